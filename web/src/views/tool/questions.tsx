// Questions that a table answers, ready to be asked: each is an order and a filter of it.
import { set, setArg } from "./state";
import type { PartProps } from "./parts";

interface Question {
  text: string;
  sort: string;
  q?: string;
  table?: string; // another than the first, which is then shown
}

const megascale: readonly Question[] = [
  { text: "Which transfer stalls most in all?", sort: "-total_stall" },
  { text: "Which single transfer stalls longest?", sort: "-stall" },
  { text: "Where is the slowest receive?", sort: "-recv_done_stall" },
  { text: "Which is sometimes much slower than usual?", sort: "-tail" },
  { text: "Which has too little time for its bytes?", sort: "-required_rate" },
  { text: "Which takes longer than the time there is for it?", sort: "slack", q: "stall>0" },
  { text: "Which peer is slowest?", sort: "-mean", table: "peers" },
  { text: "Whose messages are sometimes late?", sort: "-tail", table: "peers" },
];

function ask(x: Question, title: string): void {
  if (!x.table) return void set({ sort: x.sort, q: x.q ?? "" });
  setArg(`sort.${x.table}`, x.sort);
  requestAnimationFrame(() => document.querySelector(`section[aria-label="${CSS.escape(title)}"]`)?.scrollIntoView({ block: "start" }));
}

export function Questions({ report, s }: PartProps) {
  const titleOf = (id: string): string => report.tables.find((t) => t.id === id && t.rows.length > 0)?.title ?? "";
  const now = (x: Question): boolean =>
    x.table ? s.args[`sort.${x.table}`] === x.sort : (s.sort || "-total_stall") === x.sort && s.q === (x.q ?? "");
  return (
    <div class="questions" role="group" aria-label="Questions">
      {megascale.filter((x) => !x.table || titleOf(x.table)).map((x) => (
        <button key={x.text} type="button" class="button" aria-pressed={now(x)} onClick={() => ask(x, x.table ? titleOf(x.table) : "")}>{x.text}</button>
      ))}
    </div>
  );
}
