// Counters: the chips side by side, what changed from sample to sample, and one counter everywhere.
import type { Report, Table } from "../../api/report";
import { Copy } from "../../widgets/copy";
import { Icon } from "../../widgets/icon";
import { TablePart, type PartProps } from "./parts";
import { SampleChoice, samplesOf } from "./samples";
import { set, setArg } from "./state";

export function CounterControls({ report, s }: PartProps) {
  const beside = s.args["beside"] === "chips" || Boolean(s.args["against"]);
  return (
    <div class="controls">
      <SampleChoice report={report} s={s} first={beside ? samplesOf(report)[0]?.id ?? "" : ""} />
      <div class="switch" role="group" aria-label="Chips">
        <button type="button" aria-pressed={!beside} onClick={() => set({ sort: "", args: { ...s.args, beside: "", against: "" } })}>One a row</button>
        <button type="button" aria-pressed={beside} onClick={() => set({ sort: "", args: { ...s.args, beside: "chips" } })}>Chips side by side</button>
      </div>
      <label class="choice">Counters
        <select value={s.args["zeros"] ?? ""} onChange={(e) => setArg("zeros", e.currentTarget.value)}>
          <option value="">that are not 0</option>
          <option value="1">all</option>
        </select>
      </label>
    </div>
  );
}

/** The counter that the address names, of every chip and sample: a link to it stays one. */
export function CounterPart(p: PartProps) {
  const name = p.s.args["counter"] ?? "";
  const t = p.report.tables.find((x) => x.id === "counter");
  if (!name || !t) return null;
  return (
    <div class="counter-part">
      <p class="row">
        <b class="counter-name">{name}</b>
        <Copy title="Copy the counter's name" text={() => name} />
        <Copy label="Link" title="Copy the link to this counter" text={() => window.location.href} />
        <button type="button" class="tool" title="Choose no counter" aria-label="Choose no counter" onClick={() => setArg("counter", "")}><Icon name="close" /></button>
      </p>
      <TablePart {...p} t={t} first={false} />
    </div>
  );
}

export const counterTables = (r: Report): Table[] => r.tables.filter((t) => t.id !== "counter" && t.id !== "samples");
