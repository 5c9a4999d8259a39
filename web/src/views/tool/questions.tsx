// Questions that a table answers, ready to be asked: each is an order and a filter of it.
import { set } from "./state";
import type { PartProps } from "./parts";

interface Question {
  text: string;
  sort: string;
  q?: string;
}

const megascale: readonly Question[] = [
  { text: "Which transfer stalls most in all?", sort: "-total_stall" },
  { text: "Which single transfer stalls longest?", sort: "-stall" },
  { text: "Where is the slowest receive?", sort: "-recv_done_stall" },
  { text: "Which has too little time for its bytes?", sort: "-required_rate" },
  { text: "Which takes longer than the time there is for it?", sort: "slack", q: "stall>0" },
];

export function Questions({ s }: PartProps) {
  const now = (x: Question): boolean => (s.sort || "-total_stall") === x.sort && s.q === (x.q ?? "");
  return (
    <div class="questions" role="group" aria-label="Questions">
      {megascale.map((x) => (
        <button key={x.text} type="button" class="button" aria-pressed={now(x)} onClick={() => set({ sort: x.sort, q: x.q ?? "" })}>{x.text}</button>
      ))}
    </div>
  );
}
