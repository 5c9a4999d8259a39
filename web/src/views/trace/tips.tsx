// What the reports know of the times in view, above the rows: where suggestions are seen, and who was last in each step.
import { useMemo } from "preact/hooks";
import { px } from "../../layout/unit";
import { here } from "../../model/location";
import { percent, plural } from "../../model/format";
import { findingHref, spread, stepsIn, stepsOf, tipsOf, type Step, type Tip } from "../../model/tips";
import { xOf, type Range } from "../../model/view";
import { Popover } from "../../widgets/popover";
import { ProblemPanel } from "../../widgets/problem";
import { Loading } from "../../widgets/shell";
import { useReport } from "../tool/load";
import type { Trace } from "./trace";

const STEPS = 2000; // that are asked for
const SHOWN = 300; // marks in view: of steps that lie closer the longest stands for them
const APART = 0.05; // of a step: worth a word
const LONG = 1.2; // times the middle one
const TARGET = 24; // pixels that can be hit
const GAP = 3;

export type Go = (place: Range & { host: string }) => void;

export function TipsPanel({ trace, go }: { trace: Trace; go: Go }) {
  const marker = new URLSearchParams(here.value.search).get("step_marker");
  const ask = { run: trace.who.run, limit: STEPS, ...(marker ? { step_marker: marker } : {}) };
  const suggested = useReport(trace.api, { ...ask, tool: "smart_suggestion" });
  const pod = useReport(trace.api, { ...ask, tool: "pod_viewer" });
  const tips = useMemo(() => suggested.report.value && tipsOf(suggested.report.value), [suggested.report.value]);
  const steps = useMemo(() => (pod.report.value ? stepsOf(pod.report.value) : []), [pod.report.value]);
  if (suggested.problem.value) return <ProblemPanel small problem={suggested.problem.value} retry={suggested.retry} />;
  if (!tips) return <div class="strip-wait"><Loading what="Asking what the reports know…" /></div>;
  const page = (tool: string): string => `${trace.api.root}${tool}?run=${encodeURIComponent(trace.who.run)}${marker ? `&step_marker=${encodeURIComponent(marker)}` : ""}`;
  const why = pod.problem.value ? pod.problem.value.message : pod.report.value?.verdict ?? "";
  return (
    <section class="strip tips" aria-label="Suggestions and steps">
      <div class="strip-words">
        {tips.length ? <TipSheet tips={tips} href={page("smart_suggestion")} go={go} /> : <a href={page("smart_suggestion")}>No suggestions</a>}
        <a href={page("pod_viewer")} title={why}>{steps.length ? "Steps" : pod.busy.value ? "Steps…" : pod.problem.value ? "Steps: failed" : "No steps"}</a>
        {pod.problem.value && <button type="button" class="link" onClick={pod.retry}>Try again</button>}
      </div>
      <div class="tips-lanes">
        <TipLane trace={trace} tips={tips} href={page("smart_suggestion")} go={go} />
        <StepLane trace={trace} steps={steps} go={go} />
      </div>
    </section>
  );
}

/** Where in the picture, in CSS pixels; null: not in view. */
function boxOf(trace: Trace, r: Range): { left: string; width: string; wide: number } | null {
  const { width } = trace.size.value;
  const v = trace.shown.value;
  const x0 = xOf(v, r.t0, width);
  const x1 = xOf(v, r.t1, width);
  if (x1 < 0 || x0 > width || width === 0) return null;
  const from = Math.max(0, x0);
  const wide = Math.max(2, Math.min(width, x1) - from);
  return { left: `${from}px`, width: `${wide}px`, wide };
}

/** All of them by name, and those of this host where they are, too: beside each other where they begin close by. */
function TipLane({ trace, tips, href, go }: { trace: Trace; tips: readonly Tip[]; href: string; go: Go }) {
  const target = px(TARGET);
  const marks = tips
    .flatMap((t) => {
      const at = t.place?.host === trace.who.host ? boxOf(trace, t.place) : null;
      return at ? [{ t, at, left: parseFloat(at.left) }] : [];
    })
    .sort((a, b) => a.left - b.left);
  const { width } = trace.size.value;
  const lefts = spread(marks.map((m) => m.left), target, GAP, width);
  return (
    <>
      <ul class="tips-list">
        {tips.length === 0 && <li class="none">Nothing to suggest.</li>}
        {tips.map((t) => (
          <li key={t.rule}>
            <a class={`prio ${t.priority.toLowerCase()}`} href={findingHref(href, t.rule)} title="To the suggestion">{t.priority}</a>{" "}
            {t.place
              ? <button type="button" class="link" title={`Seen best on ${t.place.host} ${t.place.plane}: show it`} onClick={() => go(t.place!)}>{t.finding}</button>
              : t.finding}
            {t.share > 0 && <span class="faint"> {percent(t.share, 1)}</span>}
          </li>
        ))}
      </ul>
      <div class="tips-lane">
        {marks.map(({ t, at }, i) => (
          <a key={t.rule} class={`prio mark ${t.priority.toLowerCase()}`} style={{ left: `${lefts[i]!}px`, minWidth: `${Math.max(target, Math.min(at.wide, width - lefts[i]!))}px` }} href={findingHref(href, t.rule)} title={`${t.finding}\nOn ${t.place!.plane}. To the suggestion`}>
            {t.priority}
          </a>
        ))}
      </div>
    </>
  );
}

/** All of them, also those that are about no time: each leads to where it is seen, or explained, and to what the suggestions say of it. */
function TipSheet({ tips, href, go }: { tips: readonly Tip[]; href: string; go: Go }) {
  const timeless = tips.filter((t) => !t.place).length;
  return (
    <Popover title="All suggestions, also those that are about no moment" label={<>{plural(tips.length, "suggestion")}{timeless > 0 && <small> {timeless === tips.length ? "none" : timeless} {timeless === tips.length ? "with a moment" : "without a moment"}</small>}</>}>
      {(close) => (
        <ul class="tips-sheet">
          {tips.map((t) => (
            <li key={t.rule}>
              <span class={`prio ${t.priority.toLowerCase()}`}>{t.priority}</span>
              <span>
                {t.finding}{t.share > 0 && <span class="faint"> {percent(t.share, 1)}</span>}
                <span class="tips-ways">
                  {t.place
                    ? <button type="button" class="link" onClick={() => (close(), go(t.place!))}>Show on {t.place.host} {t.place.plane}</button>
                    : <span class="faint">About the run, not a moment of it.</span>}
                  <a href={findingHref(href, t.rule)}>What to do</a>
                </span>
              </span>
            </li>
          ))}
        </ul>
      )}
    </Popover>
  );
}

function StepLane({ trace, steps, go }: { trace: Trace; steps: readonly Step[]; go: Go }) {
  if (steps.length === 0) return null;
  const { t0, span } = trace.shown.value;
  const seen = stepsIn(steps, { t0, t1: t0 + BigInt(Math.ceil(span)) }, SHOWN);
  return (
    <div class="tips-lane">
      {seen.map((step) => {
        const at = boxOf(trace, step);
        if (!at) return null;
        const core = step.plane.slice(step.plane.lastIndexOf("/device:") + 1).replace("device:", "");
        const who = step.host === trace.who.host ? core : `${step.host} ${core}`;
        const apart = step.apart >= APART;
        const long = step.times >= LONG;
        const words = [long && `${step.times.toFixed(1)} × as long as usual`, apart && `cores differ by ${percent(step.apart, 1)}, ${who} worked longest`].filter(Boolean).join(", ");
        const look = {
          class: `step-mark ${apart || long ? "late" : ""}`, style: { left: at.left, width: at.width },
          title: `Step ${step.name}: ${step.times.toFixed(2)} × as long as the middle one.\n${step.host} ${core} worked longest, waiting left out; from the shortest to the longest of all cores: ${percent(step.apart, 1)}.`,
        };
        const key = `${step.name} ${step.t0}`;
        if (at.wide < TARGET) return <i key={key} {...look} />; // there is no room for more
        return (
          <button key={key} {...look} type="button" aria-label={`Step ${step.name}: ${words || "as usual"}`} onClick={() => go({ ...step })}>
            {words ? `▲ ${words}` : at.wide > 60 && "as usual"}
          </button>
        );
      })}
    </div>
  );
}
