// Which part of the run the pages are about, and the way back to all of it.
import { duration, timestamp } from "../model/format";
import { parseSteps, type ToolUrl } from "../model/toolurl";
import { parseRange } from "../model/url";
import { Icon } from "./icon";

type Part = Pick<ToolUrl, "range" | "steps">;

export function partName(s: Part): string {
  const steps = parseSteps(s.steps);
  if (steps) return steps.first === steps.last ? `step ${steps.first}` : `steps ${steps.first} to ${steps.last}`;
  const r = parseRange(s.range);
  return r ? `${duration(r.t1 - r.t0)} from ${timestamp(r.t0)}` : "";
}

/** `whole`: this page says it is about the whole run nonetheless. `href`: that part in the timeline. */
export function RangeChip({ s, clear, whole = false, href = "" }: { s: Part; clear: () => void; whole?: boolean; href?: string }) {
  const name = partName(s);
  if (!name) return null;
  return (
    <span class={`range-chip ${whole ? "ignored" : ""}`} role="group" aria-label="Part of the run">
      <Icon name={whole ? "warn" : "area"} />
      <span class="cut" title={`Chosen for all pages of the run: ${name}`}>{whole ? <>whole run, not <s>{name}</s></> : <>only {href ? <a href={href} title="Show it in the timeline">{name}</a> : name}</>}</span>
      <button type="button" class="tool" title="Back to the whole run" aria-label="Back to the whole run" onClick={clear}><Icon name="close" /></button>
    </span>
  );
}
