// Memory at a time of one's choice: a click on a curve, the time in the address, what was alive then.
import type { Report, Series, Table } from "../../api/report";
import type { Pick } from "../../charts/xy";
import { exactNs } from "../../model/format";
import { timelineHref, type ToolUrl } from "../../model/toolurl";
import { show } from "../../model/units";
import { Icon } from "../../widgets/icon";
import type { PartProps } from "./parts";
import { setArg } from "./state";

/** Session picoseconds; null: none is chosen, and each allocator is shown at its peak. */
const momentOf = (s: ToolUrl): bigint | null => (/^-?\d{1,18}$/.test(s.args["at"] ?? "") ? BigInt(s.args["at"]!) : null);

/** Which allocator the page is about. */
export function AllocatorChoice({ report, s }: PartProps) {
  const t = report.tables.find((x) => x.id === "allocators");
  const at = t?.columns.findIndex((c) => c.id === "allocator") ?? -1;
  const names = [...new Set((t?.rows ?? []).map((r) => String(r[at])))];
  const now = s.args["allocator"] ?? "";
  if (at < 0 || (names.length < 2 && !now)) return null;
  return (
    <div class="controls">
      <label class="choice">Allocator
        <select value={now} onChange={(e) => setArg("allocator", e.currentTarget.value)}>
          <option value="">all</option>
          {names.map((n) => <option key={n} value={n}>{n}</option>)}
        </select>
      </label>
    </div>
  );
}

export function momentPick(x: Series, s: ToolUrl): Pick | undefined {
  if (x.x.unit !== "ps") return undefined;
  const at = momentOf(s);
  return { at: at === null ? null : Number(at), take: (v) => setArg("at", String(v)), word: "what is alive then" };
}

/** What was asked for comes first. */
export function momentTables(r: Report): Table[] {
  const first = ["moment", "live"].flatMap((id) => r.tables.find((t) => t.id === id) ?? []);
  return r.tables.some((t) => t.id === "moment") ? [...first, ...r.tables.filter((t) => !first.includes(t))] : r.tables;
}

export function MomentPart({ report, s, root }: PartProps) {
  const at = momentOf(s);
  if (report.series.length === 0) return null;
  if (at === null) return <p class="none">Below is what is alive at each allocator's peak. Click on a curve for any other time.</p>;
  return (
    <p class="moment" role="status">
      <Icon name="memory" /> <span>What is alive at <b title={exactNs(at)}>{show(at, "ps")}</b></span>
      <a class="button" href={timelineHref(root, s, { begin: at, duration: 300_000_000n, ...(report.hosts.length === 1 ? { host: report.hosts[0]! } : {}) })}><Icon name="timeline" /> In the timeline</a>
      <button type="button" class="button" onClick={() => setArg("at", "")}>Back to the peaks</button>
    </p>
  );
}
