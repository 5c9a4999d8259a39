// What went wrong, where it happened, and what to do.
import type { Problem } from "../api/client";
import { count } from "../model/format";
import { Icon } from "./icon";

export function ProblemPanel({ problem, retry, small }: { problem: Problem; retry?: () => void; small?: boolean }) {
  const heading = problem.status ? `${problem.status} ${problem.title || ""}` : problem.title || "No answer";
  return (
    <div class={`problem ${small ? "small" : ""}`} role="alert">
      <Icon name="warn" />
      <div>
        <h2>{heading}</h2>
        <p>{problem.message}</p>
        {problem.offset !== undefined && <p>At byte {count(problem.offset)} of the file.</p>}
        {problem.hint && <p class="hint">{problem.hint}</p>}
        <p class="row">
          {retry && <button type="button" class="button" onClick={retry}><Icon name="reload" /> Try again</button>}
          {problem.code && <code>{problem.code}</code>}
        </p>
      </div>
    </div>
  );
}
