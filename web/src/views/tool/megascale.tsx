// Collectives between slices: one occurrence with its ops and actions over time; curves lead to the timeline.
import { useMemo } from "preact/hooks";
import type { Cell, Report, Series, Table } from "../../api/report";
import { Lanes } from "../../charts/lanes";
import type { Pick } from "../../charts/xy";
import { actionsOf, linksOf, type Action } from "../../model/actions";
import { plural } from "../../model/format";
import { go, here } from "../../model/location";
import { timelineHref, type ToolUrl } from "../../model/toolurl";
import { tableOf } from "../../model/torus";
import { asNumber, show } from "../../model/units";
import { Icon } from "../../widgets/icon";
import { Questions } from "./questions";
import type { PartProps } from "./parts";
import { current, set } from "./state";

const said = (r: Report, id: string): string => String(r.metrics.find((m) => m.id === id)?.value ?? "");
const column = (t: Table | undefined, id: string): number => t?.columns.findIndex((c) => c.id === id) ?? -1;

function chooseCollective(name: string): void {
  set({ args: { ...current().args, collective: name, occurrence: "" } });
}

function ActionsPart({ report: r, s, root }: PartProps) {
  const [collectives, times, t, tied] = ["collectives", "occurrences", "actions", "action_links"].map((id) => tableOf(r, id));
  const actions = useMemo(() => (t ? actionsOf(t) : []), [t]);
  const links = useMemo(() => linksOf(tied, actions.length), [tied, actions]);
  const names = useMemo(() => (collectives?.rows ?? []).map((row) => String(row[column(collectives, "collective")] ?? "")), [collectives]);
  if (!t || !times || actions.length === 0) return null;
  const [name, key] = [said(r, "collective"), said(r, "occurrence")];
  const [keyAt, host, device, took, begin] = ["key", "host", "device", "duration", "first_begin_ps"].map((id) => column(times, id)) as [number, number, number, number, number];
  const words = (row: readonly Cell[]): string => `${show(row[took], "ps")} on ${String(row[host])}${row[device] === null ? "" : ` TPU:${String(row[device])}`} at ${show(row[begin], "ps")}`;
  const now = times.rows.find((row) => row[keyAt] === key);
  const open = (a: Action): void => {
    if (a.begin !== null) go(timelineHref(root, s, { host: a.host, event: a.name, begin: a.begin, duration: Number.isNaN(a.duration) ? null : Math.round(a.duration) }));
  };
  const whole = now && now[begin] !== null ? timelineHref(root, s, { host: String(now[host]), begin: BigInt(String(now[begin])), duration: BigInt(Math.round(asNumber(now[took]) || 0)), window: true }) : "";
  const longest = times.rows[0]?.[keyAt] === key;
  return (
    <section class="panel" aria-label="Actions of a collective">
      <div class="panel-head">
        <h2>What {longest ? "the longest" : "one"} {name} is made of</h2>
        <output class="table-count">{plural(actions.length, "op and action", "ops and actions")}</output>
        {whole && <a class="button push" href={whole}><Icon name="timeline" /> In the timeline</a>}
      </div>
      <div class="controls torus-controls">
        <label class="choice">Collective
          <select value={name} onChange={(e) => chooseCollective(e.currentTarget.value)}>
            {!names.includes(name) && <option value={name}>{name}</option>}
            {names.map((n) => <option key={n} value={n}>{n}</option>)}
          </select>
        </label>
        <label class="choice">Occurrence
          <select value={key} onChange={(e) => set({ args: { ...current().args, occurrence: e.currentTarget.value } })}>
            {!now && <option value={key}>{key}</option>}
            {times.rows.map((row) => <option key={String(row[keyAt])} value={String(row[keyAt])}>{words(row)}</option>)}
          </select>
        </label>
      </div>
      <Lanes actions={actions} links={links} title={`Actions of ${name}`} onOpen={open} />
      {tied?.note && links.length > 0 && <p class="table-note">{tied.note}</p>}
    </section>
  );
}

/** A click on a curve of the network opens the timeline there. */
export function networkPick(x: Series, s: ToolUrl): Pick | undefined {
  if (x.x.unit !== "ps" || x.points.length < 2) return undefined;
  const wide = Math.max(1, asNumber(x.points[1]![0]) - asNumber(x.points[0]![0]));
  return {
    at: null, word: "the timeline there",
    take: (v) => go(timelineHref(here.peek().root, s, { begin: BigInt(Math.round(v)), duration: BigInt(Math.round(wide)), window: true })),
  };
}

export function MegascaleParts(p: PartProps) {
  return <><ActionsPart {...p} /><Questions {...p} /></>;
}
