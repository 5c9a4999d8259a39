// Which sample of the hardware's counters, and which it is compared with.
import type { Report } from "../../api/report";
import type { ToolUrl } from "../../model/toolurl";
import { set } from "./state";

interface Sample {
  id: string;
  label: string;
}

/** As the report lists them; none where there is just one. */
export function samplesOf(report: Report): Sample[] {
  const t = report.tables.find((x) => x.id === "samples");
  if (!t) return [];
  const seen = new Map<string, Sample>();
  for (const [id, kernel] of t.rows) if (!seen.has(String(id))) seen.set(String(id), { id: String(id), label: kernel ? `${id} ${kernel}` : String(id) });
  return [...seen.values()];
}

/** `first`: what the server takes when none is named; "": all of them. */
export function SampleChoice({ report, s, first }: { report: Report; s: ToolUrl; first: string }) {
  const samples = samplesOf(report);
  if (samples.length < 2) return null;
  const sample = s.args["sample"] ?? "";
  const against = s.args["against"] ?? "";
  const change = (args: Record<string, string>): void => set({ args: { ...s.args, ...args } });
  const options = (none: string, but: string) => (
    <>
      {none && <option value="">{none}</option>}
      {samples.filter((x) => x.id !== but).map((x) => <option key={x.id} value={x.id}>{x.label}</option>)}
    </>
  );
  return (
    <>
      <label class="choice">Sample
        <select value={sample || first} onChange={(e) => change({ sample: e.currentTarget.value, ...(e.currentTarget.value && e.currentTarget.value !== against ? {} : { against: "" }) })}>
          {options(first ? "" : "all", "")}
        </select>
      </label>
      <label class="choice">Less
        <select
          value={against} title="Differences from this sample"
          onChange={(e) => change({ against: e.currentTarget.value, sample: sample || first || samples.find((x) => x.id !== e.currentTarget.value)!.id })}
        >
          {options("none", sample || first)}
        </select>
      </label>
    </>
  );
}
