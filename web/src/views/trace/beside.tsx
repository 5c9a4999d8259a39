// Timelines below each other that show the same time: other hosts, other runs.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { asProblem, isAbort } from "../../api/client";
import type { Run, Runs } from "../../api/types";
import { duration } from "../../model/format";
import { BESIDE_MAX } from "../../model/url";
import { Icon } from "../../widgets/icon";
import { Popover } from "../../widgets/popover";
import { ProblemPanel } from "../../widgets/problem";
import { Loading } from "../../widgets/shell";
import type { Pointer } from "./pointer";
import { Stage } from "./stage";
import type { Trace } from "./trace";

const UNITS: Record<string, number> = { ps: 1, ns: 1e3, us: 1e6, "µs": 1e6, ms: 1e9, s: 1e12 };

const SHIFT_MAX = 1e18; // ps: eleven days, and still an offset that an address holds

/** "-1.5ms" -> ps; null: that is no time. */
export function parseShift(text: string): bigint | null {
  const m = /^([+−-]?)(\d+(?:\.\d+)?)\s*(ps|ns|us|µs|ms|s)$/.exec(text.replace(/[\s\u202f]/g, ""));
  if (!m) return /^[+-]?0?$/.test(text.trim()) ? 0n : null;
  const size = Math.round(Number(m[2]) * UNITS[m[3]!]!);
  if (size > SHIFT_MAX) return null;
  const ps = BigInt(size);
  return m[1] === "-" || m[1] === "−" ? -ps : ps;
}

/** The shortest text that parseShift gives back. */
export function shiftText(by: bigint): string {
  const size = by < 0n ? -by : by;
  const unit = ["s", "ms", "us", "ns"].find((u) => size >= BigInt(UNITS[u]!)) ?? "ps";
  const exact = unit === "ps" ? String(size) : String(Number(size) / UNITS[unit]!);
  return `${by < 0n ? "-" : ""}${exact} ${unit}`;
}

/** Another timeline with what it is, where it stands, and the way out. */
export function Besides({ trace, pointer, active, use }: { trace: Trace; pointer: { value: Pointer | null; of?: Trace }; active: Trace; use: (t: Trace) => void }) {
  return (
    <>
      {trace.beside.value.map((t) => (
        <section key={`${t.who.run}\0${t.who.host}`} class="beside" aria-label={`Timeline of ${t.who.run}, ${t.who.host}`} onPointerDownCapture={() => use(t)} onFocusCapture={() => use(t)}>
          <Head trace={t} active={active === t} />
          {t.loader.problem.value && !t.tracks.value
            ? <ProblemPanel small problem={t.loader.problem.value} retry={() => t.loader.start()} />
            : t.tracks.value ? <Stage trace={t} pointer={pointer} focus={active === t} /> : <Loading what="Opening the profile…" />}
        </section>
      ))}
    </>
  );
}

export function FirstHead({ trace, active }: { trace: Trace; active: boolean }) {
  return (
    <div class={`beside-head ${active ? "active" : ""}`}>
      <b>{trace.who.run}</b> {trace.who.host}
      <span class="push">the time of this one is the ruler of all</span>
    </div>
  );
}

function clockShift(t: Trace): bigint | null {
  const [a, b] = [t.lead!.tracks.value?.start_wall_ns, t.tracks.value?.start_wall_ns];
  if (!a || !b || a === "0" || b === "0" || a === b || t.who.run !== t.lead!.who.run) return null;
  const by = (BigInt(a) - BigInt(b)) * 1000n;
  return by > BigInt(SHIFT_MAX) || by < -BigInt(SHIFT_MAX) ? null : by;
}

function Head({ trace: t, active }: { trace: Trace; active: boolean }) {
  const both = t.event.mark.value !== null && t.lead!.event.mark.value !== null;
  const clock = clockShift(t);
  const set = (el: HTMLInputElement): void => {
    const by = parseShift(el.value);
    el.setAttribute("aria-invalid", String(by === null));
    if (by !== null) t.setShift(by);
  };
  return (
    <div class={`beside-head ${active ? "active" : ""}`}>
      <b>{t.who.run}</b> {t.who.host}
      <span class="push row">
        <label title="What is at 0 above is at this time here">Offset
          <input type="text" size={12} spellcheck={false} value={shiftText(t.shift.value)} onChange={(e) => set(e.currentTarget)} />
        </label>
        <button type="button" class="button small" disabled={!both} title="Choose an event in the first timeline and one in this: both will begin at the same place" onClick={() => t.align()}>Align the chosen events</button>
        {clock !== null && <button type="button" class="button small" title={`The hosts' clocks say ${duration(clock)}`} onClick={() => t.setShift(clock)}>By clock</button>}
        <button type="button" class="tool" title="Close" aria-label={`Close ${t.who.host} of ${t.who.run}`} onClick={() => t.leave()}><Icon name="close" /></button>
      </span>
    </div>
  );
}

/** Which host of which run comes beside this one. */
export function BesideChoice({ trace }: { trace: Trace }) {
  return (
    <Popover right title="Another host or run at the same time" label={<Icon name="compare" />}>
      {() => <Choice trace={trace} />}
    </Popover>
  );
}

function Choice({ trace }: { trace: Trace }) {
  const runs = useSignal<string[]>([trace.who.run]);
  const run = useSignal(trace.who.run);
  const hosts = useSignal<string[] | null>(null);
  const host = useSignal("");
  const said = useSignal("");
  useEffect(() => {
    const abort = new AbortController();
    trace.api.json<Runs>("runs", { limit: 200 }, abort.signal).then(
      (got) => (runs.value = [...new Set([trace.who.run, ...got.runs.filter((r) => r.state === "ready").map((r) => r.run)])]),
      () => undefined, // the run itself can be chosen
    );
    return () => abort.abort();
  }, []);
  useEffect(() => {
    const abort = new AbortController();
    hosts.value = null;
    said.value = "";
    trace.api.json<Run>("run", { run: run.value }, abort.signal).then(
      (got) => {
        const shown = new Set([trace, ...trace.beside.peek()].filter((t) => t.who.run === run.value).map((t) => t.who.host));
        hosts.value = got.hosts.filter((h) => !shown.has(h.host)).map((h) => h.host);
        host.value = hosts.value[0] ?? "";
        if (hosts.value.length === 0) said.value = "All hosts of this run are shown.";
      },
      (e: unknown) => isAbort(e) || (said.value = asProblem(e).message),
    );
    return () => abort.abort();
  }, [run.value, trace.beside.value.length]);
  const full = trace.beside.value.length >= BESIDE_MAX;
  return (
    <div class="beside-choice">
      <label>Run
        <select value={run.value} onChange={(e) => (run.value = e.currentTarget.value)}>{runs.value.map((r) => <option key={r} value={r}>{r}</option>)}</select>
      </label>
      <label>Host
        <select value={host.value} disabled={!hosts.value?.length} onChange={(e) => (host.value = e.currentTarget.value)}>{(hosts.value ?? []).map((h) => <option key={h} value={h}>{h}</option>)}</select>
      </label>
      <p class="none">{full ? "Four timelines are the most." : said.value || "It moves and zooms with this one."}</p>
      <button
        type="button" class="button" disabled={full || !host.value}
        onClick={() => trace.addBeside({ run: run.value === trace.who.run ? "" : run.value, host: host.value })}
      >
        Show beside this one
      </button>
    </div>
  );
}
