// All devices of the run at a glance: how busy each was, on the scale of the map above.
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { asProblem, isAbort, type Problem } from "../../api/client";
import { asReport, type Report } from "../../api/report";
import { readTheme } from "../../draw/theme";
import { percent, plural } from "../../model/format";
import { LEVELS, stripOf, type Strip, type StripRow } from "../../model/strip";
import { dark } from "../../model/theme";
import { endOf, type Range } from "../../model/view";
import { ProblemPanel } from "../../widgets/problem";
import { Loading } from "../../widgets/shell";
import type { Trace } from "./trace";

const HEIGHT = 192;
const LIMIT = 100_000; // devices

function rowHeight(n: number): number {
  return Math.max(1, Math.min(14, Math.floor(HEIGHT / Math.max(1, n))));
}

/** Once, when it is there: the view in it is an element of its own. */
function paint(canvas: HTMLCanvasElement, strip: Strip, session: Range, scale: number): void {
  const ctx = canvas.getContext("2d", { alpha: false });
  if (!ctx) return;
  const theme = readTheme();
  const { clientWidth: width, clientHeight: height } = canvas;
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  ctx.fillStyle = theme.background;
  ctx.fillRect(0, 0, canvas.width, canvas.height);
  const whole = Number(session.t1 - session.t0);
  const x0 = (Number(strip.t0 - session.t0) / whole) * canvas.width;
  const wide = ((Number(strip.t1 - strip.t0) / whole) * canvas.width) / (strip.rows[0]?.levels.length ?? 1);
  const h = canvas.height / Math.max(1, strip.rows.length);
  const gap = h >= 4 * scale ? Math.round(scale) : 0;
  strip.rows.forEach((row, r) => {
    const y = Math.round(r * h);
    const tall = Math.round((r + 1) * h) - y - gap;
    for (let c = 0; c < row.levels.length; ) {
      const level = row.levels[c]!;
      let end = c + 1;
      while (end < row.levels.length && row.levels[end] === level) end++;
      ctx.globalAlpha = level < 0 ? 1 : Math.min(1, level / LEVELS) ** 0.8;
      ctx.fillStyle = level < 0 ? theme.heading : theme.accent;
      const x = Math.round(x0 + c * wide);
      ctx.fillRect(x, y, Math.round(x0 + end * wide) - x, tall);
      c = end;
    }
  });
  ctx.globalAlpha = 1;
}

function words(row: StripRow): string {
  if (row.device) return `${row.device} of ${row.host}: ${percent(row.busy, 1)} busy`;
  return `${row.host}: ${plural(row.devices, "device")}, ${percent(row.busy, 1)} busy; least: ${row.least.device} ${percent(row.least.busy, 1)}`;
}

export function StripPanel({ trace, go }: { trace: Trace; go: (host: string, at: bigint) => void }) {
  const strip = useSignal<Strip | "none" | null>(null);
  const problem = useSignal<Problem | null>(null);
  const again = useSignal(0);
  const pointed = useSignal<StripRow | null>(null);
  const canvas = useRef<HTMLCanvasElement>(null);

  useEffect(() => {
    const abort = new AbortController();
    strip.value = problem.value = null;
    trace.api.json<Partial<Report>>("report", { run: trace.who.run, tool: "device_activity", limit: LIMIT }, abort.signal).then(
      (got) => (strip.value = stripOf(asReport(got)) ?? "none"),
      (e: unknown) => isAbort(e) || (problem.value = asProblem(e)),
    );
    return () => abort.abort();
  }, [again.value]);

  const s = strip.value;
  const { width, scale } = trace.size.value;
  const session = trace.session.value;
  useEffect(() => {
    if (s && s !== "none" && canvas.current && width) paint(canvas.current, s, session, scale);
  }, [s, width, scale, session.t0, session.t1, dark.value]);

  if (problem.value) return <ProblemPanel small problem={problem.value} retry={() => again.value++} />;
  if (!s) return <div class="strip-wait"><Loading what="Looking at the devices of all hosts…" /></div>;
  if (s === "none") return <p class="none">No device of this run did anything.</p>;
  const where = (e: PointerEvent | MouseEvent): { row: StripRow | null; at: bigint } => {
    const box = canvas.current!.getBoundingClientRect();
    const row = s.rows[Math.floor(((e.clientY - box.top) / box.height) * s.rows.length)] ?? null;
    return { row, at: session.t0 + BigInt(Math.round(((e.clientX - box.left) / box.width) * Number(session.t1 - session.t0))) };
  };
  return (
    <section class="strip" aria-label="All devices">
      <div class="strip-words">
        <b>{plural(s.hosts, "host")}, {plural(s.devices, "device")}</b>
        <span>{pointed.value ? words(pointed.value) : s.verdict}</span>
        {s.missing.length > 0 && <span class="warn-text" title={s.missing.slice(0, 40).join("\n")}>{plural(s.missing.length, "host")} could not be read</span>}
        <a href={`${trace.api.root}device_activity?run=${encodeURIComponent(trace.who.run)}`}>As a table</a>
      </div>
      <div class="strip-picture" style={{ height: `${Math.max(40, rowHeight(s.rows.length) * s.rows.length)}px` }}>
        <canvas
          ref={canvas} role="img" aria-label={`How busy each device was. ${s.verdict}`}
          onPointerMove={(e) => (pointed.value = where(e).row)} onPointerLeave={() => (pointed.value = null)}
          onClick={(e) => {
            const { row, at } = where(e);
            if (row) go(row.host, at);
          }}
        />
        <Frame trace={trace} />
      </div>
    </section>
  );
}

/** The view. */
function Frame({ trace }: { trace: Trace }) {
  const v = trace.shown.value;
  const s = trace.session.value;
  const whole = Number(s.t1 - s.t0);
  const part = (t: bigint): number => Math.min(1, Math.max(0, Number(t - s.t0) / whole)) * 100;
  const left = part(v.t0);
  return <i class="strip-view" style={{ left: `${left}%`, width: `${Math.max(0.2, part(endOf(v)) - left)}%` }} />;
}
