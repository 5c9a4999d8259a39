// The torus: which chip does what in a step, and who sends to whom in a channel.
import { useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import type { Report, Series } from "../../api/report";
import { TorusMap } from "../../charts/torus";
import { count, plural } from "../../model/format";
import { go } from "../../model/location";
import { timelineHref } from "../../model/toolurl";
import { channelsOf, chipsOf, edgesOf, MEASURES, planesOf, tableOf, topologyOf } from "../../model/torus";
import { asNumber, show } from "../../model/units";
import { Icon } from "../../widgets/icon";
import { SeriesPart, type PartProps } from "./parts";
import { set, setArg } from "./state";

/** Numbers of the steps that there are, ascending: the heat map's columns. */
function stepsOf(r: Report): number[] {
  const heat = r.series.find((x) => x.id === "heat");
  return [...new Set((heat?.points ?? []).map((p) => asNumber(p[0])).filter((v) => Number.isInteger(v) && v >= 0))].sort((a, b) => a - b);
}

/** A slider over the steps; at its left end are the means of all. */
function StepChoice({ steps, now }: { steps: readonly number[]; now: string }) {
  const place = now === "" ? -1 : steps.indexOf(Number(now));
  const moved = useSignal<number | null>(null);
  const timer = useRef(0);
  useEffect(() => {
    moved.value = null;
  }, [now]);
  useEffect(() => () => clearTimeout(timer.current), []);
  const at = moved.value ?? place;
  const take = (i: number): void => {
    moved.value = i;
    clearTimeout(timer.current);
    timer.current = window.setTimeout(() => setArg("step", i < 0 ? "" : String(steps[i]), false), 120);
  };
  const name = at < 0 ? "mean of all steps" : `step ${steps[at]}`;
  return (
    <div class="row torus-steps">
      <button type="button" class="tool" title="The step before" aria-label="The step before" disabled={at < 0} onClick={() => take(at - 1)}><Icon name="prev" /></button>
      <input type="range" min={-1} max={steps.length - 1} step={1} value={at} aria-label="Step" aria-valuetext={name} onInput={(e) => take(Number(e.currentTarget.value))} />
      <button type="button" class="tool" title="The next step" aria-label="The next step" disabled={at >= steps.length - 1} onClick={() => take(at + 1)}><Icon name="next" /></button>
      <output>{name}</output>
    </div>
  );
}

function TopologyChoice({ chips, now }: { chips: number; now: string }) {
  const text = useSignal(now);
  useEffect(() => {
    text.value = now;
  }, [now]);
  const good = text.value.trim() === "" || topologyOf(text.value, chips) !== null;
  return (
    <form class="row torus-size" onSubmit={(e) => (e.preventDefault(), good && setArg("topology", text.value.trim()))}>
      <label class="choice">Torus
        <input type="text" size={8} maxLength={17} spellcheck={false} placeholder="4x8" value={text.value} aria-invalid={!good} title="Size of a slice, if you know better: 4x8 or 2x2x4" onInput={(e) => (text.value = e.currentTarget.value)} onBlur={() => good && text.value.trim() !== now && setArg("topology", text.value.trim())} />
      </label>
      {!good && <span class="bad-word" role="status">4x8 or 2x2x4, for {plural(chips, "chip")} or more</span>}
    </form>
  );
}

export function TorusPart(p: PartProps) {
  const { report, s, root } = p;
  const t = tableOf(report, "chips");
  const [edgeTable, channelTable] = [tableOf(report, "edges"), tableOf(report, "channels")];
  const chips = useMemo(() => (t ? chipsOf(t) : []), [t]);
  const planes = useMemo(() => planesOf(chips), [chips]);
  const channels = useMemo(() => (channelTable ? channelsOf(channelTable) : []), [channelTable]);
  const { edges, open, untold } = useMemo(() => (edgeTable ? edgesOf(edgeTable, chips) : { edges: [], open: 0, untold: 0 }), [edgeTable, chips]);
  const steps = useMemo(() => stepsOf(report), [report]);
  if (!t || chips.length === 0) return null;
  const torus = chips.some((c) => !Number.isNaN(c.chip));
  const asked = MEASURES.findIndex(([id]) => id === s.args["measure"]);
  const measure = asked < 0 ? 0 : asked;
  const shown = s.args["arrows"] !== "0";
  const channel = String(report.metrics.find((m) => m.id === "channel")?.value ?? "");
  const each = 1 + chips.reduce((m, c) => Math.max(m, Number.isNaN(c.chip) ? 0 : c.chip), 0);
  const openChip = (i: { host: string; begin: unknown; values: number[] }): void => {
    if (i.begin === null) return set({ hosts: [i.host] });
    go(timelineHref(root, s, { host: i.host, begin: BigInt(String(i.begin)), duration: BigInt(Math.round(i.values[1] || 0)), window: true }));
  };
  return (
    <section class="panel torus-part" aria-label={`${t.title}, drawn`}>
      <div class="panel-head">
        <h2>{t.title}</h2>
        <output class="table-count">{plural(new Set(chips.map((c) => (Number.isNaN(c.chip) ? `${c.host} ${c.core}` : `${c.slice} ${c.chip}`))).size, torus ? "chip" : "device")}{t.total_rows > t.rows.length && `; ${count(t.rows.length)} of ${count(t.total_rows)} cores are here: choose hosts`}</output>
      </div>
      <div class="controls torus-controls">
        <div class="switch" role="group" aria-label="Shown as colour">
          {MEASURES.map(([id, name], i) => <button key={id} type="button" aria-pressed={i === measure} onClick={() => setArg("measure", id, false)}>{name}</button>)}
        </div>
        {steps.length > 0 && <StepChoice steps={steps} now={s.args["step"] ?? ""} />}
        {torus && <TopologyChoice chips={each} now={s.args["topology"] ?? ""} />}
      </div>
      {channels.length > 0 && (
        <div class="controls torus-controls">
          <label class="choice">Channel
            <select value={channel} onChange={(e) => setArg("channel", e.currentTarget.value, false)}>
              {!channels.some((c) => c.key === channel) && <option value={channel}>{channel}</option>}
              {channels.map((c) => <option key={c.key} value={c.key}>{c.op}{c.channel && ` · ${c.channel}`} · {show(c.latency, "ps")}</option>)}
            </select>
          </label>
          <label class="row"><input type="checkbox" checked={shown} onChange={(e) => setArg("arrows", e.currentTarget.checked ? "" : "0", false)} /> Arrows</label>
          {open + untold > 0 && <span class="table-count">{open > 0 ? `${plural(open, "core")} without a sender on these hosts` : edges.length === 0 ? "Nothing says who sends to whom" : `Of ${plural(untold, "core")} nothing says who sends to them`}: the table below has what each core took.</span>}
        </div>
      )}
      <TorusMap chips={chips} planes={planes} measure={measure} edges={shown ? edges : []} title={t.title} slices={planes.some((x) => x.slice > 0)} onOpen={openChip} />
      {t.note && <p class="table-note">{t.note}{channels.length > 0 && " Partition i of a program is taken for core i."}</p>}
    </section>
  );
}

/** The heat map of hosts and steps first, then the torus, then the rest. */
const isFirst = (x: Series): boolean => x.id === "heat";
export const podSeries = (r: Report): Series[] => (r.series.some(isFirst) ? r.series.filter(isFirst) : r.series.slice(0, 1));

export function PodParts(p: PartProps) {
  const rest = p.report.series.filter((x) => !podSeries(p.report).includes(x));
  return (
    <>
      <TorusPart {...p} />
      {rest.length > 0 && <div class="charts">{rest.map((x) => <SeriesPart key={x.id} series={x} {...p} />)}</div>}
    </>
  );
}
