// The timeline's page.
import { useComputed, useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { Api, asProblem, isAbort, type Problem } from "../../api/client";
import { big } from "../../api/json";
import type { Run } from "../../api/types";
import { categories, colourOf, palettes, type Category, type PaletteName } from "../../model/colour";
import { coverageLine } from "../../model/coverage";
import { bytes, count, duration, exactNs, plural, shortCount, timestamp } from "../../model/format";
import { go, here } from "../../model/location";
import { emptyTrace, formatTrace, parseTrace, type Mode, type TraceUrl } from "../../model/url";
import { isTime, lastingText, withLasting } from "../../model/query";
import { toggled } from "../../model/sets";
import { choosePalette, palette, paletteName } from "../../model/theme";
import { parseTool } from "../../model/toolurl";
import { endOf, fitView, sameView, type Range } from "../../model/view";
import { runTitle } from "../../model/runname";
import { coverageOf } from "../../shell/coverage";
import { Icon, type IconName } from "../../widgets/icon";
import { Popover } from "../../widgets/popover";
import { ProblemPanel } from "../../widgets/problem";
import { RangeChip } from "../../widgets/rangechip";
import { Bar, Loading } from "../../widgets/shell";
import { Besides, BesideChoice, FirstHead } from "./beside";
import { Dock } from "./dock";
import { Help } from "./help";
import { listenKeys } from "./keys";
import { Minimap } from "./minimap";
import type { Pointer } from "./pointer";
import { StripPanel } from "./strip";
import { Stage } from "./stage";
import { choosePart, handedOn, syncAddress } from "./sync";
import { TipsPanel } from "./tips";
import { Trace } from "./trace";

/** The run's hosts, for the choice; without one in the address the first is taken. */
export function TracePage() {
  const { root, search } = here.value;
  const { run, host } = parseTrace(search);
  const info = useSignal<Run | null>(null);
  const problem = useSignal<Problem | null>(null);
  const again = useSignal(0);
  const api = useMemo(() => new Api(root), [root]);

  useEffect(() => {
    document.title = `${runTitle(run)} · xprofd`;
    const abort = new AbortController();
    problem.value = null;
    api.json<Run>("run", { run }, abort.signal).then(
      (got) => {
        info.value = got;
        const first = got.hosts[0];
        if (!host && first) go(`${root}trace${formatTrace({ ...parseTrace(window.location.search), host: first.host })}${handedOn()}`, true);
      },
      (e: unknown) => isAbort(e) || (problem.value = asProblem(e)),
    );
    return () => abort.abort();
  }, [api, run, again.value]);

  if (problem.value)
    return (
      <>
        <Bar crumbs={<><a href={root}>Runs</a> <Icon name="right" /> <b>{run || "?"}</b></>} />
        <main class="page"><ProblemPanel problem={problem.value} retry={() => again.value++} /></main>
      </>
    );
  if (info.value?.run === run && info.value.hosts.length === 0)
    return (
      <>
        <Bar crumbs={<><a href={root}>Runs</a> <Icon name="right" /> <b>{runTitle(run)}</b></>} />
        <main class="page"><p class="none">This run holds no profile. {info.value.location ? <>Read: <code>{info.value.location}</code>. Expected there: </> : "Expected in it: "}<code>&lt;host&gt;.xplane.pb</code>.</p></main>
      </>
    );
  if (!host) return <><Bar crumbs={<a href={root}>Runs</a>} /><main class="page"><Loading what="Opening the run…" /></main></>;
  return <TraceOf key={`${run}\0${host}`} api={api} run={run} host={host} info={info.value} />;
}

function TraceOf({ api, run, host, info }: { api: Api; run: string; host: string; info: Run | null }) {
  const trace = useMemo(() => new Trace(api, { run, host }), []);
  const pointer = useRef<{ value: Pointer | null; of?: Trace }>({ value: null });
  const { used } = trace;
  const active = trace.beside.value.includes(used.value) ? used.value : trace;
  const helping = useSignal(false);
  const input = useRef<HTMLInputElement>(null);

  useEffect(() => {
    trace.apply(parseTrace(window.location.search));
    trace.start();
    const unsync = syncAddress(trace);
    const now = (): Trace => (trace.beside.peek().includes(used.peek()) ? used.peek() : trace);
    const over = (): Pointer | null => (pointer.current.of === now() ? pointer.current.value : null);
    const unlisten = listenKeys({
      trace: now,
      focusSearch: () => input.current?.select(),
      toggleHelp: () => (helping.value = !helping.peek()),
      pointerShare: () => {
        const x = over()?.x;
        return x === undefined ? 0.5 : x / Math.max(1, trace.size.peek().width);
      },
      pointer: over,
    });
    const unkeep = keepFocus();
    return () => {
      unkeep();
      unlisten();
      unsync();
      trace.stop();
    };
  }, [trace]);

  const { problem, tracks } = trace.loader;
  return (
    <div class="trace">
      <Bar crumbs={<Crumbs api={api} trace={trace} run={run} host={host} info={info} />}>
        <SearchBox trace={trace} input={input} />
        <Tools trace={trace} help={() => (helping.value = true)} />
      </Bar>
      <Banners trace={trace} />
      {problem.value && !tracks.value
        ? <main class="page"><ProblemPanel problem={problem.value} retry={() => trace.loader.start()} /></main>
        : tracks.value
          ? <Body trace={trace} pointer={pointer.current} active={active} use={(t) => void (used.value = t)} />
          : <main class="page"><FirstLoad trace={trace} /></main>}
      <Dock trace={active} />
      <Status trace={trace} />
      {helping.value && <Help close={() => { helping.value = false; }} />}
      <p id="said" class="said" role="status" aria-live="polite">{active.said.value || trace.said.value}</p>
      <p class="unseen" aria-live="polite">{spoken(active)}</p>
    </div>
  );
}

/** Where the button that was pressed is no more (a row that was hidden, the panel that was closed), keys go on at the canvas. */
function keepFocus(): () => void {
  const look = (): void => {
    const was = document.activeElement;
    if (!was || was === document.body) return;
    setTimeout(() => {
      if (!was.isConnected && document.activeElement === document.body) document.querySelector<HTMLElement>(".drawing canvas")?.focus({ preventScroll: true });
    }, 50);
  };
  document.addEventListener("click", look, true);
  document.addEventListener("keydown", look, true);
  return () => {
    document.removeEventListener("click", look, true);
    document.removeEventListener("keydown", look, true);
  };
}

/** The canvas has no words of its own for those who cannot see it. */
function spoken(trace: Trace): string {
  const d = trace.event.details.value;
  if (!d) return "";
  const { answer } = (trace.lead ?? trace).search;
  const hit = answer.value ? trace.search.place(String(d.id)) : 0;
  return `${hit ? `Hit ${hit} of ${answer.value!.total}: ` : ""}${d.display_name || d.name || "no name"}, ${duration(big(d.duration_ps))} at ${timestamp(big(d.begin_ps))}, ${d.plane_name}, ${d.line_name}`;
}

function Body({ trace, pointer, active, use }: {
  trace: Trace; pointer: { value: Pointer | null; of?: Trace }; active: Trace; use: (t: Trace) => void;
}) {
  const t = trace.tracks.value!;
  if (!t.loading && t.events === 0)
    return (
      <main class="page">
        <div class="empty">
          <h2>No events in this profile</h2>
          <p>
            {plural(t.planes_total, "plane")} {t.planes_total === 1 ? "was" : "were"} read from{" "}
            {bytes(t.bytes_total)}; none holds a timed event.
            {t.damage && <> The file is damaged at byte {count(t.damage.offset)}: {t.damage.detail}.</>}
          </p>
        </div>
      </main>
    );
  return (
    <main class="body">
      <h1 class="unseen">Timeline of {trace.who.run}, {trace.who.host}</h1>
      <Minimap trace={trace} />
      {trace.tips.value && <TipsPanel trace={trace} go={(place) => showPlace(trace, place)} />}
      {trace.strip.value && <StripPanel trace={trace} go={(host, at) => showHost(trace, host, at)} />}
      <section class="beside" aria-label="First timeline" onPointerDownCapture={() => use(trace)} onFocusCapture={() => use(trace)}>
        {trace.beside.value.length > 0 && <FirstHead trace={trace} active={active === trace} />}
        <Stage trace={trace} pointer={pointer} focus={active === trace} />
      </section>
      <Besides trace={trace} pointer={pointer} active={active} use={use} />
    </main>
  );
}

/** Hosts share one clock: the other one is seen at the same time, with what is not about one host's rows and events. */
function goHost(trace: Trace, host: string, more: Partial<TraceUrl> = {}): void {
  const { t, q, marks, measured, strip, tips, off, drag, palette } = trace.url();
  go(`${trace.api.root}trace${formatTrace({ ...emptyTrace, run: trace.who.run, host, t, q, marks, measured, strip, tips, off, drag, palette, ...more })}${handedOn()}`);
}

/** Another host at a time, as wide as now; of this one its devices, where they are. */
function showHost(trace: Trace, host: string, at: bigint): void {
  const v = trace.view.peek();
  const t0 = at - BigInt(Math.round(v.span / 2));
  if (host === trace.who.host) return trace.goTo({ at, note: "" });
  const t = trace.chosen.peek() && { t0, t1: t0 + BigInt(Math.round(v.span)) };
  goHost(trace, host, { t, strip: true });
}

/** A time on a host, with some air around it. */
function showPlace(trace: Trace, place: Range & { host: string }): void {
  const v = fitView(place, trace.bounds.peek(), 0.5);
  if (place.host === trace.who.host || !place.host) return trace.zoomInto(v);
  goHost(trace, place.host, { t: { t0: v.t0, t1: endOf(v) }, tips: true });
}

function Crumbs({ api, trace, run, host, info }: { api: Api; trace: Trace; run: string; host: string; info: Run | null }) {
  const hosts = info?.hosts ?? [];
  return (
    <>
      <a href={api.root}>Runs</a> <Icon name="right" />
      <a href={`${api.root}run?run=${encodeURIComponent(run)}`} title={runTitle(run)}>{runTitle(run)}</a> <Icon name="right" />
      {hosts.length > 1
        ? (
          <select aria-label="Host" value={host} onChange={(e) => goHost(trace, e.currentTarget.value)}>
            {!hosts.some((h) => h.host === host) && <option value={host}>{host}</option>}
            {hosts.map((h) => <option key={h.host} value={h.host}>{h.host}</option>)}
          </select>
        )
        : <b title={host}>{host}</b>}
      <RangeChip s={parseTool(here.value.search)} clear={() => choosePart(trace, "")} />
    </>
  );
}

function SearchBox({ trace, input }: { trace: Trace; input: { current: HTMLInputElement | null } }) {
  const { text, answer, busy, problem } = trace.search;
  const total = answer.value?.total;
  const at = trace.event.id.value ? trace.search.place(trace.event.id.value) : 0;
  const keys = (e: KeyboardEvent): void => {
    if (e.key === "Enter") {
      void trace.stepHit(e.shiftKey ? -1 : 1);
    } else if (e.key === "Escape") {
      if (text.peek()) trace.search.set("");
      document.querySelector<HTMLElement>(".drawing canvas")?.focus();
    }
  };
  return (
    <search class="search">
      <Icon name="search" />
      <input
        ref={input} type="text" spellcheck={false} autocomplete="off" placeholder="Search events  ( / )" aria-label="Search events"
        value={text.value} onKeyDown={keys}
        onInput={(e) => {
          trace.search.set(e.currentTarget.value);
          if (e.currentTarget.value.trim()) trace.openDock("hits");
        }}
      />
      {text.value.trim() !== "" && (
        <>
          <output class={total === 0 || problem.value ? "bad" : ""}>
            {problem.value ? "error" : total === undefined ? (busy.value ? "…" : "") : at ? `${count(at)} / ${shortCount(total)}` : shortCount(total)}
          </output>
          <button type="button" class="tool" title="Previous hit ([)" aria-label="Previous hit" onClick={() => void trace.stepHit(-1)}><Icon name="up" /></button>
          <button type="button" class="tool" title="Next hit (])" aria-label="Next hit" onClick={() => void trace.stepHit(1)}><Icon name="down" /></button>
          <button type="button" class="tool" title="Clear" aria-label="Clear the search" onClick={() => trace.search.set("")}><Icon name="close" /></button>
        </>
      )}
    </search>
  );
}

function Tools({ trace, help }: { trace: Trace; help: () => void }) {
  const modes: { id: Mode; icon: IconName; title: string }[] = [
    { id: "select", icon: "area", title: "Drag selects an area (1, or Shift + drag)" },
    { id: "pan", icon: "move", title: "Drag moves (2)" },
    { id: "zoom", icon: "zoom", title: "Drag zooms (3)" },
    { id: "measure", icon: "measure", title: "Drag measures, and keeps to the ends of events (4)" },
  ];
  return (
    <>
      <div class={`group ${trace.mode.value === "pan" ? "" : "used"}`} role="group" aria-label="What dragging does">
        {modes.map((m) => (
          <button
            key={m.id} type="button" class="tool" aria-pressed={trace.mode.value === m.id} title={m.title} aria-label={m.title}
            onClick={() => trace.setMode(m.id)}
          >
            <Icon name={m.icon} />
          </button>
        ))}
      </div>
      <ColourChoice trace={trace} />
      <BesideChoice trace={trace} />
      <button
        type="button" class="tool" aria-pressed={trace.strip.value} title="All devices of the run (V)" aria-label="All devices of the run"
        onClick={() => trace.toggleStrip()}
      >
        <Icon name="grid" />
      </button>
      <button
        type="button" class="tool" aria-pressed={trace.tips.value} title="Suggestions and late steps (I)" aria-label="Suggestions and late steps"
        onClick={() => trace.toggleTips()}
      >
        <Icon name="bulb" />
      </button>
      <button type="button" class="tool" title="Fit the selection (F)" aria-label="Fit the selection" onClick={() => trace.fit()}><Icon name="fit" /></button>
      <button type="button" class="tool" title="Whole session (0)" aria-label="Whole session" onClick={() => trace.whole()}><Icon name="whole" /></button>
      <button type="button" class="tool" title="Keys (?)" aria-label="Keys" onClick={help}><Icon name="help" /></button>
    </>
  );
}

/** How long events are: the search says it, these fields write it there. */
function Bounds({ trace }: { trace: Trace }) {
  const q = trace.search.text.value;
  const set = (el: HTMLInputElement, end: "least" | "most"): void => {
    const text = el.value.replace(/\s/g, "").toLowerCase();
    const good = text === "" || isTime(text);
    el.setAttribute("aria-invalid", String(!good));
    if (good) trace.search.set(withLasting(q, end, text));
  };
  return (
    <fieldset class="bounds">
      <legend>Duration</legend>
      {(["least", "most"] as const).map((end) => (
        <label key={end}>{end === "least" ? "at least" : "at most"}
          <input type="text" size={7} spellcheck={false} placeholder={end === "least" ? "10us" : "1.5ms"} value={lastingText(q, end)} onChange={(e) => set(e.currentTarget, end)} />
        </label>
      ))}
    </fieldset>
  );
}

/** What colours mean, which of them stand back, and other ones for other eyes. */
function ColourChoice({ trace }: { trace: Trace }) {
  const off = trace.off.value;
  const flip = (id: Category): void => {
    trace.step = true;
    trace.off.value = toggled(off, id);
  };
  return (
    <Popover right title="Colours: kinds of work" label={<><Icon name="layers" />{off.size > 0 && ` ${categories.length - off.size} of ${categories.length}`}{trace.lasting.value && <span class="dot" />}</>}>
      {() => (
        <>
          <div class="chooser">
            {categories.map((c) => (
              <label key={c.id}>
                <input type="checkbox" checked={!off.has(c.id)} onChange={() => flip(c.id)} />
                <i class="swatch" style={{ background: colourOf("", c.id, palette.value) }} /> <span>{c.label}</span>
              </label>
            ))}
          </div>
          <Bounds trace={trace} />
          <label class="choice">Palette
            <select value={paletteName.value} onChange={(e) => choosePalette(e.currentTarget.value as PaletteName)}>
              {Object.entries(palettes).map(([id, p]) => <option key={id} value={id}>{p.label}</option>)}
            </select>
          </label>
        </>
      )}
    </Popover>
  );
}

function FirstLoad({ trace }: { trace: Trace }) {
  const p = trace.loader.progress.value;
  return (
    <div class="first-load">
      <Loading what={p?.state === "indexing" ? "Indexing the profile…" : "Opening the profile…"} />
      {p && p.bytes_total > 0 && (
        <>
          <progress max={p.bytes_total} value={p.bytes_done} />
          <p>{bytes(p.bytes_done)} of {bytes(p.bytes_total)} · {plural(p.events, "event")} · planes {p.planes_done} of {p.planes_total}</p>
        </>
      )}
    </div>
  );
}

function Banners({ trace }: { trace: Trace }) {
  const t = trace.tracks.value;
  const failed = trace.fetcher.problem.value;
  const lost = t && trace.loader.problem.value;
  return (
    <div class="banners">
      {t?.loading && (
        <div class="banner loading-banner" role="status">
          <span class="spinner" />
          Loading: {bytes(t.bytes_done)} of {bytes(t.bytes_total)} · {plural(t.events, "event")} · planes {t.planes_done} of {t.planes_total}
          <progress max={Math.max(1, t.bytes_total)} value={t.bytes_done} />
        </div>
      )}
      {t?.partial && (
        <div class="banner warn" role="status">
          <Icon name="warn" />
          <span>
            <b>This file is damaged; what could be read before the damage is shown.</b>{" "}
            {t.damage && <>At byte {count(t.damage.offset)}: {t.damage.detail}</>}
          </span>
        </div>
      )}
      {lost && <ProblemPanel small problem={lost} retry={() => trace.loader.start()} />}
      {failed && <ProblemPanel small problem={failed} retry={() => trace.fetcher.retry()} />}
    </div>
  );
}

/** What the profiler says it dropped, where it does: gaps may be that. */
function Lost({ trace }: { trace: Trace }) {
  const r = coverageOf(trace.api.root, trace.who.run, trace.who.host ? [trace.who.host] : []).value;
  const { warnings } = r ? coverageLine(r, r, 0, "") : { warnings: [] };
  const lost = warnings.find((w) => w.includes("dropped"));
  return lost ? <span class="warned" title="The profiler says so: what looks like a gap may be that">{lost}</span> : null;
}

function Status({ trace }: { trace: Trace }) {
  const t = trace.tracks.value;
  const view = trace.shown.value;
  const shown = useComputed(() => {
    void trace.fetcher.version.value;
    void trace.shown.value;
    let events = 0;
    let hidden = 0;
    for (const row of trace.inSight.value)
      for (const lane of (row.line && !row.curve && trace.slabOf(row.line.line)?.lanes) || []) {
        events += lane.events;
        hidden += lane.hidden;
      }
    return { events, hidden };
  });
  if (!t) return <footer class="status" />;
  const { events, hidden } = shown.value;
  return (
    <footer class="status">
      {trace.trail.value.length > 0 && (
        <nav class="zooms" aria-label="Zoomed into">
          <button type="button" class="link" onClick={() => trace.whole()}>All</button>
          {trace.trail.value.map((v) => (
            <span key={`${v.t0} ${v.span}`}> › <button type="button" class="link" title={`From ${timestamp(v.t0)}`} aria-current={sameView(v, view) ? "true" : undefined} onClick={() => trace.zoomInto(v)}>{duration(v.span, 3)}</button></span>
          ))}
        </nav>
      )}
      <span title={`Length of what is in view: ${exactNs(Math.round(view.span))}`}><b>{duration(view.span, 4)}</b> in view</span>
      <span class="wide">{timestamp(view.t0)} … {timestamp(endOf(view))}</span>
      <span title="Of the rows in sight, in the loaded window">
        {plural(events, "event")} loaded{hidden > 0 && <>, {count(hidden)} merged: zoom in to see each</>}
      </span>
      {!t.loading && <Lost trace={trace} />}
      <span class="push">{plural(t.events, "event")} · {plural(t.planes_total, "plane")} · {bytes(t.bytes_total)}</span>
      {trace.fetcher.lastMs.value > 0 && (
        <span class="wide" title="Last answer of the server">{trace.fetcher.lastMs.value.toFixed(0)} ms, {bytes(trace.fetcher.lastBytes.value)}</span>
      )}
    </footer>
  );
}
