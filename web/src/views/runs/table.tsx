// The list of runs as a table: columns that can be chosen and made wider, ordered by the server.
import type { Signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import type { Api } from "../../api/client";
import type { RunRow } from "../../api/types";
import { ago, bytes, count, date, plural } from "../../model/format";
import { firstWay, sparkPoints, type History, type RunColumn, type ShownColumns } from "../../model/runcolumns";
import type { RunMark } from "../../model/runmarks";
import { toggled } from "../../model/sets";
import type { Sort } from "../../model/tablemodel";
import { exact, show } from "../../model/units";
import { figureState } from "../../shell/figures";
import { pinned, togglePin } from "../../shell/pins";
import { Icon } from "../../widgets/icon";
import { Popover } from "../../widgets/popover";
import { MarkButton, Marks } from "./marks";
import { columns } from "../../model/runcolumns";

export type Widths = Signal<Record<string, number>>;

const LEAST = 46; // px of a column
const MOST = 900;

export function ColumnChooser({ of, changed, choose }: { of: ShownColumns; changed: ReadonlySet<string>; choose: (ids: Set<string>) => void }) {
  const flip = (id: string): void => choose(toggled(changed, id));
  return (
    <Popover title="Choose columns" right label={<><Icon name="columns" /> Columns</>}>
      {() => (
        <>
          <div class="chooser">
            {columns.filter((c) => !c.fixed).map((c) => (
              <label key={c.id} title={c.title}>
                <input type="checkbox" checked={of.shown.includes(c)} onChange={() => flip(c.id)} />
                <span>{c.label}{of.blank.includes(c) && <span class="ago"> no values</span>}</span>
              </label>
            ))}
          </div>
          {changed.size > 0 && <button type="button" class="button" onClick={() => choose(new Set())}>As usual</button>}
        </>
      )}
    </Popover>
  );
}

/** Once more the other way, once more as usual: newest first. */
export function nextSort(c: RunColumn, now: Sort | null): Sort | null {
  const first = firstWay(c);
  if (now?.column !== c.id) return { column: c.id, descending: first };
  return now.descending === first ? { column: c.id, descending: !first } : null;
}

export function Head({ c, sort, order, widths }: { c: RunColumn; sort: Sort | null; order: (s: Sort | null) => void; widths: Widths }) {
  const set = (w: number): void => {
    widths.value = { ...widths.peek(), [c.id]: Math.round(Math.min(MOST, Math.max(LEAST, w))) };
  };
  const widthOf = (e: Event): number => (e.currentTarget as HTMLElement).closest("th")!.getBoundingClientRect().width;
  const drag = (e: PointerEvent): void => {
    const handle = e.currentTarget as HTMLElement;
    e.preventDefault();
    handle.setPointerCapture(e.pointerId);
    const x0 = e.clientX;
    const w0 = widthOf(e);
    const move = (m: PointerEvent): void => set(w0 + m.clientX - x0);
    handle.addEventListener("pointermove", move);
    handle.addEventListener("lostpointercapture", () => handle.removeEventListener("pointermove", move), { once: true });
  };
  const widen = (e: KeyboardEvent): void => {
    const step = e.key === "ArrowRight" ? 16 : e.key === "ArrowLeft" ? -16 : 0;
    if (!e.shiftKey || step === 0) return;
    e.preventDefault();
    set(widthOf(e) + step);
  };
  const way = sort?.column !== c.id ? "none" : sort.descending ? "descending" : "ascending";
  const width = widths.value[c.id];
  const arrow = way === "none" ? "" : way === "descending" ? " ↓" : " ↑";
  return (
    <th scope="col" class={`${c.number ? "number" : ""} ${c.wide ? "wide" : ""}`} title={c.title} style={sized(width)} aria-sort={c.unsorted ? undefined : way}>
      {c.unsorted
        ? c.label
        : (
          <button type="button" class="sorter" aria-keyshortcuts="Shift+ArrowRight Shift+ArrowLeft" onClick={() => order(nextSort(c, sort))} onKeyDown={widen}>
            {c.label}<span class="arrow" aria-hidden="true">{arrow}</span>
          </button>
        )}
      <span
        class="resize" role="separator" aria-orientation="vertical" aria-label={`Width of ${c.label}`} aria-valuenow={width ?? 0} aria-valuemin={LEAST} aria-valuemax={MOST} tabIndex={-1}
        onPointerDown={drag} onDblClick={() => { const { [c.id]: _, ...rest } = widths.peek(); widths.value = rest; }}
      />
    </th>
  );
}

function sized(width: number | undefined): Record<string, string> {
  return width === undefined ? {} : { width: `${width}px`, minWidth: `${width}px`, maxWidth: `${width}px` };
}

export interface LineProps {
  r: RunRow;
  root: string;
  api: Api;
  shown: readonly RunColumn[];
  widths: Widths;
  history: History | undefined;
  get: () => void;
  ticked: boolean;
  tick: () => void;
  m: RunMark | undefined;
  edit: () => void;
  choose: (label: string) => void;
}

export function RunLine(p: LineProps) {
  const { r, root, m } = p;
  const q = encodeURIComponent(r.run);
  return (
    <tr class={`${p.ticked ? "ticked" : ""} ${m?.hidden ? "hidden-run" : ""}`}>
      <td class="tick-cell">{r.state === "ready" && <input type="checkbox" checked={p.ticked} aria-label={`Compare ${r.run}`} title="Tick two to compare them, or those that are one capture to join them" onChange={p.tick} />}</td>
      {p.shown.map((c) => <Cell key={c.id} p={p} c={c} />)}
      <td class="row-links">
        <MarkButton run={r.run} m={m} open={p.edit} />
        {r.state === "ready" && (
          <>
            <button
              type="button" class="pin-run" aria-pressed={pinned(root).includes(r.run)} aria-label={`Pin ${r.run}`} title="Pin: it then stands in the menu, in this browser"
              onClick={() => togglePin(root, r.run)}
            >
              <Icon name="pin" />
            </button>
            <a href={`${root}overview_page?run=${q}`} aria-label={`Overview of ${r.run}`} title="Overview"><Icon name="gauge" /></a>
            <a href={`${root}trace?run=${q}`} aria-label={`Timeline of ${r.run}`} title="Timeline"><Icon name="timeline" /></a>
          </>
        )}
      </td>
    </tr>
  );
}

/** Without seconds, and without the year if it is this one: both stand in the title. */
function short(text: string): string {
  return text.replace(/(:\d\d):\d\d/, "$1").replace(` ${new Date().getFullYear()},`, ",");
}

function Cell({ p, c }: { p: LineProps; c: RunColumn }) {
  const { r, root } = p;
  const style = sized(p.widths.value[c.id]);
  const box = (children: ComponentChildren, more = "", title = "") => (
    <td class={`${c.number ? "number" : ""} ${c.wide ? "wide" : ""} ${more}`} style={style} {...(title ? { title } : {})}>{children}</td>
  );
  switch (c.id) {
    case "run": {
      const page = r.hosts === 1 && r.state === "ready" ? "trace" : "run";
      return <th scope="row" style={style}><a href={`${root}${page}?run=${encodeURIComponent(r.run)}`}>{r.run}</a><Marks m={p.m} choose={p.choose} /></th>;
    }
    case "captured": {
      const when = date(r.captured_ms);
      const from = r.captured_from === "name" ? "from the run's name" : "from the file's time";
      return box(<>{short(when.text)} <span class="ago">{ago(r.captured_ms, Date.now())}</span></>, "when", when.iso && `${when.iso}\n${from}`);
    }
    case "kind": return r.kind ? box(r.kind, "kind-cell") : unknown(p, c, "capture_kind");
    case "hosts": return box(ofExpected(r.hosts, r.facts?.expected_hosts), "", r.facts?.notes["expected_hosts"] ?? "");
    case "devices": {
      const n = r.facts?.devices ?? null;
      return n === null ? unknown(p, c, "devices") : box(ofExpected(n, r.facts?.expected_devices), "", r.facts?.notes["expected_devices"] ?? "");
    }
    case "size": return box(bytes(r.bytes), "size-cell", `${count(r.bytes)} bytes`);
    case "state": return box(<><span class={`pill ${r.state}`}>{r.state}</span> {r.note && <span class="note" title={r.note}>{r.note}</span>}</>, "state-cell");
    case "findings": return r.facts && r.facts.findings_p0 !== null ? box(<Findings p={p} />, "findings-cell") : unknown(p, c, "findings_p0");
    case "history": return box(p.history ? <Spark h={p.history} /> : "", "spark-cell");
    case "dropped": {
      const n = r.facts?.dropped_events ?? null;
      return n === null ? unknown(p, c, "dropped_events") : box(n > 0 ? <b class="warned">{count(n)}</b> : "0", "", r.facts?.notes["dropped_events"] ?? "");
    }
    default: {
      const v = (c.fact ? r.facts?.[c.fact] : null) as number | string | null | undefined;
      if (v === null || v === undefined) return unknown(p, c, c.fact ?? "");
      const note = r.facts!.notes[c.fact!];
      return box(show(v, c.unit ?? ""), c.id === "device" ? "device-cell" : `figure ${c.id === "step" ? "step-cell" : ""}`, [exact(v, c.unit ?? ""), note].filter(Boolean).join("\n"));
    }
  }
}

/** Not in the profile and why, being asked for, or to be had by a click. */
function unknown(p: LineProps, c: RunColumn, fact: string) {
  const { r } = p;
  const kind = `${c.number ? "number" : ""} ${c.wide ? "wide" : ""} ${c.id === "step" ? "step-cell" : ""}`;
  const { waiting, problem } = figureState(p.api, r.run);
  const why = r.facts ? r.facts.why[fact] ?? "the profile does not say" : problem;
  if (why) return <td class={`${kind} na`} title={why}>n/a</td>;
  if (waiting) return <td class={`${kind} na`}>{c.id === "step" ? <span class="spinner" role="status" aria-label={`Getting the figures of ${r.run}`} /> : "…"}</td>;
  if (r.state !== "ready" || c.id !== "step") return <td class={`${kind} na`}>–</td>;
  return <td class={kind}><button type="button" class="get" title="Get the figures of this run: opens its profile" aria-label={`Get the figures of ${r.run}`} onClick={p.get}>get</button></td>;
}

/** "12/16" where more should be there than are. */
function ofExpected(n: number, expected: number | null | undefined): ComponentChildren {
  return expected && expected > n ? <span class="warned">{count(n)}/{count(expected)}</span> : count(n);
}

function Findings({ p }: { p: LineProps }) {
  const f = p.r.facts!;
  const parts = ([["P0", f.findings_p0], ["P1", f.findings_p1], ["P2", f.findings_p2]] as const).filter(([, n]) => n);
  if (parts.length === 0) return <span class="ago">none</span>;
  return (
    <a href={`${p.root}smart_suggestion?run=${encodeURIComponent(p.r.run)}`} title="Suggestions">
      <span class="unseen">Findings of {p.r.run}: </span>
      {parts.map(([k, n]) => <span key={k}><span class={`finding-count ${k.toLowerCase()}`}>{n} {k}</span> </span>)}
    </a>
  );
}

const WIDTH = 64;
const HEIGHT = 16;

function Spark({ h }: { h: History }) {
  const points = sparkPoints(h.steps, WIDTH, HEIGHT);
  const [x, y] = points[h.at]!;
  const now = h.steps[h.at]!;
  const before = h.at > 0 ? h.steps[h.at - 1]! : 0;
  const change = before > 0 ? `, ${now >= before ? "+" : "−"}${((Math.abs(now - before) / before) * 100).toFixed(1)} % against the one before` : "";
  const text = `Step time of ${plural(h.steps.length, "listed run")} of the same work: ${show(Math.min(...h.steps), "ps")} to ${show(Math.max(...h.steps), "ps")}; here ${show(now, "ps")}${change}`;
  return (
    <svg class="spark" width={WIDTH + 6} height={HEIGHT + 6} viewBox={`-3 -3 ${WIDTH + 6} ${HEIGHT + 6}`} role="img" aria-label={text}>
      <title>{text}</title>
      <polyline points={points.map((q) => q.map((v) => v.toFixed(1)).join(",")).join(" ")} />
      <circle cx={x.toFixed(1)} cy={y.toFixed(1)} r="2.5" />
    </svg>
  );
}
