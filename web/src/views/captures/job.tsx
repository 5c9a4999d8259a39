// One capture: how far it is, and what came of it, target by target.
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { Capture, Options, TargetResult } from "../../api/captures";
import { bytes, count, date, hour, plural } from "../../model/format";
import { failedTargets, isOver, isThere, levelWords, outcomeOf, progressWords, retryOf, runHrefOf, spell, toneOf } from "../../model/captures";
import { captures, clock, start } from "../../shell/captures";
import { CaptureProgress, EndButtons, lengthWords, useAct, user } from "../../shell/recording";
import { Copy } from "../../widgets/copy";
import { Icon } from "../../widgets/icon";

const MANY = 60;

function Pill({ tone, text }: { tone: string; text: string }) {
  return <span class={`pill tone ${tone}`}>{tone === "good" ? <Icon name="check" /> : tone ? <Icon name="warn" /> : null} {text}</span>;
}

function TargetLine({ t }: { t: TargetResult }) {
  const facts = [t.bytes !== null && t.bytes > 0 && bytes(t.bytes), t.attempts > 1 && plural(t.attempts, "attempt"), t.grpc_status !== null && t.grpc_status > 0 && `status ${t.grpc_status}`].filter(Boolean);
  return (
    <li>
      <b class="target-name">{t.target}</b>
      <Pill tone={toneOf(t.outcome)} text={outcomeOf(t)} />
      <span class="ago" title={t.bytes !== null ? `${count(t.bytes)} bytes` : undefined}>{facts.join(" · ")}</span>
      {t.message && t.outcome !== "SUCCEEDED" && <p class="target-message">{t.message}</p>}
      {t.hint && t.outcome !== "SUCCEEDED" && <p class="hint">{t.hint}</p>}
    </li>
  );
}

/** What went wrong first, then what goes on. */
function inOrder(list: readonly TargetResult[]): TargetResult[] {
  const weight = (t: TargetResult): number => (t.outcome === "SUCCEEDED" ? 2 : t.outcome === null ? 1 : 0);
  return [...list].sort((a, b) => weight(a) - weight(b));
}

function TargetLines({ c }: { c: Capture }) {
  const all = useSignal(false);
  const list = inOrder(c.targets);
  const shown = all.value ? list : list.slice(0, MANY);
  return (
    <>
      <ul class="target-results" aria-label={`Targets of ${c.run}`}>{shown.map((t) => <TargetLine key={t.target} t={t} />)}</ul>
      {shown.length < list.length && <button type="button" class="link" onClick={() => (all.value = true)}>{plural(list.length - shown.length, "more target")}</button>}
    </>
  );
}

const optionWords = (o: Options): string => Object.entries(o).map(([k, v]) => `${k}=${v}`).join(", ");

function jobText(c: Capture): string {
  return [`Capture ${c.run} (${c.id}): ${progressWords(c, clock.peek())}`, ...inOrder(c.targets).map((t) => `- ${t.target}: ${outcomeOf(t)}${t.bytes ? `, ${bytes(t.bytes)}` : ""}${t.message && t.outcome !== "SUCCEEDED" ? `: ${t.message}` : ""}`), window.location.href, ""].join("\n");
}

/** `fresh`: it was begun here just now, and is looked for. */
export function JobCard({ c, open, flip, root, started, fresh }: { c: Capture; open: boolean; flip: () => void; root: string; started: (id: string) => void; fresh: boolean }) {
  const { act, busy, said } = useAct();
  const title = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    if (!fresh) return;
    title.current?.closest("article")?.scrollIntoView({ block: "center" });
    title.current?.focus({ preventScroll: true });
  }, [fresh]);
  const now = clock.value;
  const over = isOver(c);
  const targets = captures.value?.targets ?? [];
  const again = retryOf(c, targets);
  const began = date(c.began_ms);
  const ended = c.ended_ms ?? (over ? null : c.ends_ms);
  const failed = failedTargets(c).length;
  return (
    <article class={`job-card ${open ? "open" : ""}`} aria-label={`Capture ${c.run}`}>
      <header>
        <button ref={title} type="button" class="job-title" aria-expanded={open} onClick={flip}><Icon name={open ? "down" : "right"} /> <b>{c.run}</b></button>
        {c.kind === "snapshot" && <span class="pill">snapshot</span>}
        <Pill tone={over ? toneOf(c.outcome) : ""} text={over ? { SUCCEEDED: "succeeded", PARTIAL: "in part", CANCELLED: "cancelled", FAILED: "failed" }[c.outcome ?? "FAILED"] : c.phase === "waiting" ? "waits" : c.phase === "capturing" ? "records" : "collects"} />
        <span class="ago push" title={began.iso}>{began.text}</span>
      </header>
      {!over && <CaptureProgress c={c} />}
      <p class="job-words" aria-live={open ? "polite" : undefined}>{over ? progressWords(c, now) : <span aria-hidden="true">{progressWords(c, now)}</span>}</p>
      <p class="row wrap">
        {isThere(c) && <a class="button primary" href={runHrefOf(root, c)}><Icon name="gauge" /> Open the run</a>}
        <EndButtons c={c} act={act} busy={busy} />
        {again && (
          <button type="button" class="button" disabled={busy} title="The same again, of those that failed: a run of its own, as it is another moment" onClick={() => void act(async () => started((await start(again)).id))}>
            <Icon name="reload" /> Retry {again.targets.length === 1 ? again.targets[0]! : plural(again.targets.length, "target")}
          </button>
        )}
        {!open && failed > 0 && <button type="button" class="link" onClick={flip}>Why {failed === 1 ? "one" : count(failed)} failed</button>}
      </p>
      {said}
      {open && (
        <>
          {c.note && <p class="ago">{c.note}</p>}
          <dl class="job-facts">
            <div><dt>Began</dt><dd title={began.iso}>{began.text}</dd></div>
            {ended !== null && <div><dt>{over ? "Ended" : "Ends"}</dt><dd title={date(ended).iso}>{over ? date(ended).text : hour(ended)}</dd></div>}
            <div><dt>Records</dt><dd>{lengthWords(c)}{c.delay_ms > 0 && `, after ${spell(c.delay_ms)}`}</dd></div>
            <div><dt>Levels</dt><dd>{levelWords(c.levels)}</dd></div>
            {Object.keys(c.options).length > 0 && <div><dt>Options</dt><dd>{optionWords(c.options)}</dd></div>}
            {c.by && <div><dt>By</dt><dd>{user(c.by)}</dd></div>}
          </dl>
          <TargetLines c={c} />
          <p class="row"><Copy label="Text" title="Copy what came of it, as Text" text={() => jobText(c)} /></p>
        </>
      )}
    </article>
  );
}
