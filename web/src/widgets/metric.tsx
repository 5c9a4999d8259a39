// A figure of a report: value, or n/a and why; its spread; its definition on demand.
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import type { Metric } from "../api/report";
import { asNumber, exact, show, signed } from "../model/units";
import { Icon } from "./icon";

/** Longer values are words, which need no large figures. */
const WORDS = 14;

export function Tile({ m, href, hrefTitle, window, base, small }: {
  m: Metric; href?: string; hrefTitle?: string; base?: Metric | undefined; small?: boolean;
  window?: { href: string; title: string } | undefined; // of the timeline, besides the page
}) {
  const open = useSignal(false);
  const has = m.value !== null;
  return (
    <article title={small && m.spread ? spreadText(m) : undefined} class={`tile ${has ? "" : "na"} ${small ? "small" : ""}`} data-metric={m.id}>
      <header>
        <h3 title={small ? m.label : undefined}>{m.label}</h3>
        {window && <a class="define" href={window.href} title={window.title} aria-label={window.title}><Icon name="timeline" /></a>}
        {m.definition && (
          <button
            type="button" class="define" aria-expanded={open.value} aria-label={`What ${m.label} means`} title={m.definition}
            onClick={() => (open.value = !open.peek())}
          >
            <Icon name="info" />
          </button>
        )}
      </header>
      <p class={`tile-value ${typeof m.value === "string" && m.value.length > WORDS ? "words" : ""}`} title={exact(m.value, m.unit)}>
        {has ? (href ? <a href={href} title={hrefTitle ?? ""}>{split(show(m.value, m.unit))}</a> : split(show(m.value, m.unit))) : "n/a"}
      </p>
      {m.unit === "fraction" && has && <Meter value={asNumber(m.value)} />}
      {!has && <p class="tile-reason">{m.reason ?? "The profile does not say."}</p>}
      {base && <Delta m={m} base={base} />}
      {m.spread && !small && <Spread m={m} />}
      {m.note && <p class={`tile-note ${CARE.test(m.note) ? "care" : ""}`}>{m.note}</p>}
      {open.value && <p class="tile-definition"><b>Definition:</b> {m.definition}</p>}
    </article>
  );
}

/** Figures that others are made from, or that say how sure those are: smaller, below the others. */
export function isSecond(m: Metric): boolean {
  return /^peak_(flop|hbm|vmem|cmem|l1|shared)|_sd$|^device_time$|^flop_rate$|^hbm_rate$|^clock_offset$|^capacity_|^optimum_|^ridge_|^arithmetic_|^(host|device)_(op|eager)_|^compute_\d/.test(m.id) ||
    (m.id === "straggler" && m.value === "none");
}

/** Figures that are missing; those for the same reason together, which is said once. */
export function Unknown({ metrics }: { metrics: readonly Metric[] }) {
  const groups = new Map<string, Metric[]>();
  for (const m of metrics) groups.set(m.reason ?? "", [...(groups.get(m.reason ?? "") ?? []), m]);
  return (
    <dl class="unknown" aria-label="Figures that are not available">
      {[...groups].map(([reason, group]) => (
        <div key={reason}>
          <dt>{group.map((m, i) => <span key={m.id} data-metric={m.id} title={m.definition}>{i > 0 && ", "}{m.label}</span>)}</dt>
          <dd><b>n/a</b> {reason || "The profile does not say."}</dd>
        </div>
      ))}
    </dl>
  );
}

/** Notes that ask for care, not those that say where a number is from. */
const CARE = /above 100|inferred|estimat|partial|too (low|high|few)|not part|cut/i;

/** The unit smaller than its number. */
function split(text: string): ComponentChildren {
  const m = /^([−+<>]?[\d\u202f.,e+-]+)\s(.{1,8})$/.exec(text);
  return m ? <>{m[1]}<small> {m[2]}</small></> : text;
}

function Meter({ value }: { value: number }) {
  return (
    <span class={`meter ${value > 1 ? "over" : ""}`} aria-hidden="true">
      <span style={{ width: `${Math.min(100, Math.max(0, value * 100))}%` }} />
    </span>
  );
}

function spreadText(m: Metric): string {
  const { min, max, max_host } = m.spread!;
  return `${show(min, m.unit)} to ${show(max, m.unit)}${max_host ? `, most on ${max_host}` : ""}`;
}

function Spread({ m }: { m: Metric }) {
  const { min, max, sd, max_host } = m.spread!;
  const low = asNumber(min);
  const high = asNumber(max);
  const value = asNumber(m.value);
  const place = high > low && !Number.isNaN(value) ? Math.min(1, Math.max(0, (value - low) / (high - low))) : -1;
  return (
    <p class="tile-spread">
      {place >= 0 && <span class="range" aria-hidden="true"><i style={{ left: `${place * 100}%` }} /></span>}
      <span>{show(min, m.unit)} to {show(max, m.unit)}{sd !== null && sd !== undefined && <> · σ {show(sd, m.unit)}</>}</span>
      {max_host && <span title="Where the largest value is"> · most on <b>{max_host}</b></span>}
    </p>
  );
}

/** Whether more is better; null where it is neither. */
export function moreIsBetter(id: string): boolean | null {
  if (/^(device|kernel|program)_time$/.test(id)) return null; // of all that was recorded, be it long or short
  if (/(utilization|duty_cycle|flop_rate|hbm_rate|throughput|bandwidth|goodput|efficiency)/.test(id) && !/(peak|optimum)_(flop|hbm)/.test(id)) return true;
  if (/(time|idle|memory|latency|stall|input_fraction|sd|spill|offset|waste|collective|unattributed)/.test(id)) return false;
  return null;
}

function Delta({ m, base }: { m: Metric; base: Metric }) {
  const now = asNumber(m.value);
  const then = asNumber(base.value);
  if (typeof m.value === "string" || typeof base.value === "string")
    return <p class="delta">{m.value === base.value ? "the same" : <>was <b>{show(base.value, base.unit)}</b></>}</p>;
  if (Number.isNaN(now) || Number.isNaN(then)) return <p class="delta">was {show(base.value, base.unit)}</p>;
  const diff = now - then;
  const better = moreIsBetter(m.id);
  const still = diff === 0 || Math.abs(diff) < Math.abs(then) * 1e-4 || (m.unit === "fraction" && Math.abs(diff) < 5e-5);
  const tone = still || better === null ? "" : diff > 0 === better ? "good" : "bad";
  const ratio = then > 0 && now > 0 ? now / then : NaN;
  const far = ratio > 10 || ratio < 0.1; // a percentage says little then
  const relative = then === 0 || m.unit === "fraction" ? "" : ` (${far ? `×${show(ratio, "")}` : signed(diff / Math.abs(then), "fraction")})`;
  return (
    <p class={`delta ${tone}`}>
      {still ? "unchanged" : <><span aria-hidden="true">{diff > 0 ? "▲" : "▼"} </span>{m.unit === "fraction" ? `${signed(diff * 100, "")} points` : signed(diff, m.unit)}{relative}{tone && <span class="unseen">, {tone === "good" ? "better" : "worse"}</span>}</>}
      <span class="ago"> was {show(base.value, base.unit)}</span>
    </p>
  );
}
