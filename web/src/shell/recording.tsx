// Captures in the bar of every page: that something records continuously, and what is at work.
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { asProblem, type Problem } from "../api/client";
import type { Capture, Continuous } from "../api/captures";
import { ago, date, hour, plural } from "../model/format";
import { here } from "../model/location";
import { isOver, isThere, outcomeWords, progressOf, progressWords, runHrefOf, spell, toneOf } from "../model/captures";
import { Icon } from "../widgets/icon";
import { Popover } from "../widgets/popover";
import { ProblemPanel } from "../widgets/problem";
import { captures, clock, dismiss, end, record, snapshot, watched } from "./captures";

/** What went wrong with a button stands where the button is. */
export function useAct(): { act: (what: () => Promise<unknown>) => Promise<void>; busy: boolean; said: ComponentChildren } {
  const problem = useSignal<Problem | null>(null);
  const busy = useSignal(false);
  const act = async (what: () => Promise<unknown>): Promise<void> => {
    problem.value = null;
    busy.value = true;
    try {
      await what();
    } catch (e) {
      problem.value = asProblem(e);
    } finally {
      busy.value = false;
    }
  };
  return { act, busy: busy.value, said: problem.value && <ProblemPanel small problem={problem.value} /> };
}

/** Asks once more before it throws something away. */
export function Sure({ label, ask, title, act, disabled }: { label: string; ask: string; title: string; act: () => void; disabled?: boolean }) {
  const sure = useSignal(false);
  const click = (): void => {
    if (sure.peek()) act();
    sure.value = !sure.peek();
  };
  return <button type="button" class="button" title={title} disabled={disabled ?? false} onClick={click} onBlur={() => (sure.value = false)}>{sure.value ? ask : label}</button>;
}

export const captureHref = (root: string, id: string): string => `${root}captures?id=${encodeURIComponent(id)}`;

export function CaptureProgress({ c }: { c: Capture }) {
  const part = progressOf(c, clock.value);
  return <progress {...(part === null ? {} : { max: 1, value: part })} aria-label={`Capture ${c.run}`} />;
}

/** How to end one that is at work. */
export function EndButtons({ c, act, busy }: { c: Capture; act: (what: () => Promise<unknown>) => Promise<void>; busy: boolean }) {
  if (isOver(c)) return null;
  return (
    <>
      {c.kind === "on_demand" && c.phase !== "collecting" && (
        <button type="button" class="button" disabled={busy} title="Ends it now and keeps what was recorded until then" onClick={() => void act(() => end(c.id, false))}>End now and keep</button>
      )}
      <Sure label="Drop" ask="Really drop it?" title="Ends it and keeps nothing" disabled={busy} act={() => void act(() => end(c.id, true))} />
    </>
  );
}

function CaptureLine({ c }: { c: Capture }) {
  const { root } = here.value;
  const { act, busy, said } = useAct();
  const over = isOver(c);
  return (
    <li class="capture-line">
      <p class="row">
        <span>{c.kind === "snapshot" ? "Snapshot" : "Capture"} <a class="cut" href={captureHref(root, c.id)} title={c.run}>{c.run}</a></span>
        {over && <button type="button" class="tool push" title="Close" aria-label={`Close the note about ${c.run}`} onClick={() => dismiss(c.id)}><Icon name="close" /></button>}
      </p>
      {!over && <CaptureProgress c={c} />}
      <p class={over ? `tone ${toneOf(c.outcome)}` : "ago"}>{over && <Icon name={c.outcome === "SUCCEEDED" ? "check" : "warn"} />} {progressWords(c, clock.value)}</p>
      <p class="row wrap">
        {isThere(c) && <a class="button primary" href={runHrefOf(root, c)}>Open the run</a>}
        <EndButtons c={c} act={act} busy={busy} />
      </p>
      {said}
    </li>
  );
}

/** Those at work, and those that this page saw at work until they ended. */
export function captureNews(): { going: Capture[]; over: Capture[] } {
  const all = captures.value?.captures ?? [];
  return { going: all.filter((c) => !isOver(c)), over: all.filter((c) => isOver(c) && watched.value.has(c.id)) };
}

export function CaptureLines() {
  const { going, over } = captureNews();
  if (going.length + over.length === 0) return null;
  return <ul class="jobs" aria-label="Captures">{[...going, ...over].map((c) => <CaptureLine key={c.id} c={c} />)}</ul>;
}

/** For who does not see it. */
export function CaptureVoice() {
  const { over } = captureNews();
  const c = over.reduce<Capture | undefined>((a, b) => ((b.ended_ms ?? 0) > (a?.ended_ms ?? -1) ? b : a), undefined); // began last is not ended last
  return <p class="unseen" role="status">{c ? `Capture ${c.run}: ${outcomeWords(c)}` : ""}</p>;
}

/* --- continuously --- */

const sinceOf = (list: readonly Continuous[]): number | null => list.reduce<number | null>((a, c) => (c.since_ms !== null && (a === null || c.since_ms < a) ? c.since_ms : a), null);

/** 14:02, and of another day that, too. */
export function sinceWords(ms: number | null, now: number): string {
  if (ms === null) return "since when is not known";
  return now - ms < 12 * 3600e3 ? `since ${hour(ms)}` : `since ${date(ms).text}`;
}

export const user = (by: string | null): string => (by ? by.replace(/^user:/, "") : "");

export function Since({ list }: { list: readonly Continuous[] }) {
  const ms = sinceOf(list);
  const now = Date.now();
  return <span title={ms === null ? "" : date(ms).iso}>{sinceWords(ms, now)}{ms !== null && now - ms >= 60_000 && <span class="ago"> {ago(ms, now)}</span>}</span>;
}

export function RecordingButtons({ list, after }: { list: readonly Continuous[]; after?: (c: Capture) => void }) {
  const { act, busy, said } = useAct();
  const refused = useSignal<readonly { target: string; message: string; hint: string }[]>([]);
  const names = list.map((c) => c.target);
  return (
    <>
      <p class="row wrap">
        <button
          type="button" class="button primary" disabled={busy} title="Takes what the buffers of the targets hold now, as a run; recording goes on"
          onClick={() => void act(async () => { const c = await snapshot(); after?.(c); })}
        >
          <Icon name="camera" /> Take snapshot
        </button>
        <Sure label="Stop" ask={`Really stop ${names.length === 1 ? names[0]! : plural(names.length, "target")}?`} title="Ends the recording; what the buffers hold is gone" disabled={busy} act={() => void act(async () => { refused.value = await record(names, false); })} />
      </p>
      <RefusedList list={refused.value} what="still records" />
      {said}
    </>
  );
}

export function RefusedList({ list, what }: { list: readonly { target: string; message: string; hint: string }[]; what: string }) {
  if (list.length === 0) return null;
  return (
    <div role="alert">
      <ul class="refused">
        {list.map((f) => <li key={f.target}><Icon name="warn" /> <span><b>{f.target}</b> {what}{f.message && <>: {f.message}</>}{f.hint && <span class="hint"> {f.hint}</span>}</span></li>)}
      </ul>
    </div>
  );
}

/** Small, in the bar of every page. */
export function RecordingChip() {
  const list = captures.value?.continuous ?? [];
  if (list.length === 0) return null;
  const { root } = here.value;
  const unknown = list.filter((c) => c.state === "unknown").length;
  return (
    <Popover
      right title={`Recording continuously: ${plural(list.length, "target")}, ${sinceWords(sinceOf(list), Date.now())}`}
      label={<><span class="recording-dot" aria-hidden="true" /> <span class="word">Recording <span class="when-word">{sinceWords(sinceOf(list), Date.now())}</span></span></>}
    >
      {(close) => (
        <div class="recording-sheet">
          <p><b>{list.length === 1 ? list[0]!.target : plural(list.length, "target")}</b> {list.length === 1 ? "records" : "record"} continuously <Since list={list} />.</p>
          {unknown > 0 && <p class="ago">Whether {unknown === list.length ? "they do" : `${unknown} of them do`} still is not known: a snapshot tells.</p>}
          <RecordingButtons list={list} />
          <p><a href={`${root}captures`} onClick={close}>All captures</a></p>
        </div>
      )}
    </Popover>
  );
}

export const lengthWords = (c: Capture): string => (c.kind === "snapshot" ? "what the buffers held" : spell(c.duration_ms));
