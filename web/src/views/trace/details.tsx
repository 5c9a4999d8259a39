// One event in full.
import { big } from "../../api/json";
import type { Argument, EventDetails, Flow } from "../../api/types";
import { bytes, clock, count, duration, exactNs, plural, timestamp } from "../../model/format";
import { Copy } from "../../widgets/copy";
import { Icon } from "../../widgets/icon";
import { ProblemPanel } from "../../widgets/problem";
import { Loading } from "../../widgets/shell";
import { NearOps } from "./nearops";
import { TransferParts } from "./transfer";
import type { Trace } from "./trace";

const FLOWS = 100; // listed

function Fact({ name, children, title }: { name: string; children: preact.ComponentChildren; title?: string | undefined }) {
  return (
    <div class="fact" title={title}>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

/** When that was by the host's clock; null: the profile does not say. */
function wallClock(trace: Trace, begin: bigint): { text: string; iso: string } | null {
  const start = trace.tracks.value?.start_wall_ns;
  return start && start !== "0" ? clock(BigInt(start) + begin / 1000n) : null;
}

function Facts({ trace, d }: { trace: Trace; d: EventDetails }) {
  const begin = big(d.begin_ps);
  const length = big(d.duration_ps);
  const wall = wallClock(trace, begin);
  return (
    <dl class="facts">
      <Fact name="Duration" title={`${length} ps`}><b>{duration(length)}</b> <span>{exactNs(length)}</span></Fact>
      {d.self_ps !== null && (
        <Fact name="Self" title={`${big(d.self_ps)} ps`}>{duration(big(d.self_ps))} <span>{exactNs(big(d.self_ps))}</span></Fact>
      )}
      <Fact name="Begin" title={`${begin} ps`}>{timestamp(begin)}</Fact>
      {wall && <Fact name="By clock" title={wall.iso}>{wall.text}</Fact>}
      <Fact name="End" title={`${begin + length} ps`}>{timestamp(begin + length)}</Fact>
      <Fact name="Line">{d.plane_name} › {d.line_name}{d.derived && <span class="faint" title="Made from other events; no file holds it"> · derived</span>}</Fact>
      {d.occurrences !== null && <Fact name="Occurrences">{count(big(d.occurrences))}</Fact>}
    </dl>
  );
}

function value(a: Argument): string {
  if (a.value === null) return a.bytes === undefined ? "" : `${bytes(a.bytes)} of binary data`;
  return a.type.includes("int") && /^-?\d+$/.test(a.value) ? count(BigInt(a.value)) : a.value;
}

function Arguments({ trace, d }: { trace: Trace; d: EventDetails }) {
  if (d.args.length === 0) return <p class="none">This event carries no arguments.</p>;
  return (
    <table class="args">
      <tbody>
        {d.args.map((a, i) => (
          <tr key={i} class={a.from}>
            <th scope="row" title={a.from === "metadata" ? "shared by all events of this name" : "of this event"}>{a.name}</th>
            <td class={/int|double/.test(a.type) ? "number" : ""} title={a.type}>
              {value(a)}{a.cut && <em> … cut</em>}
              {a.value !== null && <Copy text={() => a.value!} title={`Copy ${a.name}`} />}
              {a.value !== null && /int|double/.test(a.type) && !d.derived && (
                <button type="button" class="tool small" aria-pressed={trace.curves.has({ line: d.line, stat: a.name })} title={`Draw ${a.name} of the row's events as a curve`} aria-label={`Draw ${a.name} as a curve`} onClick={() => trace.toggleCurve({ line: d.line, stat: a.name })}><Icon name="memory" /></button>
              )}
            </td>
          </tr>
        ))}
        {d.args_cut && <tr><th /><td class="none">There are more arguments than are shown.</td></tr>}
      </tbody>
    </table>
  );
}

function FlowLink({ trace, flow }: { trace: Trace; flow: Flow }) {
  const id = flow.ids[0];
  const row = trace.rows.value.byLine.get(flow.line);
  const where = row ? `${row.plane.name} › ${row.line!.name}` : `line ${flow.line}`;
  return (
    <li>
      <button type="button" class="link" disabled={id === undefined} onClick={() => id !== undefined && trace.chooseId(id)}>
        <Icon name={flow.direction} />
        {flow.direction === "out" ? "to" : "from"} {where}
      </button>
      <span> {flow.category} · at {timestamp(big(flow.begin_ps))}{flow.ids.length > 1 && ` · ${plural(flow.ids.length, "event")}`}</span>
    </li>
  );
}

function asText(d: EventDetails): string {
  return [
    d.name,
    `duration\t${d.duration_ps} ps`,
    `begin\t${d.begin_ps} ps`,
    `line\t${d.plane_name} / ${d.line_name}`,
    ...d.args.map((a) => `${a.name}\t${a.value ?? `(${a.bytes ?? 0} bytes)`}`),
  ].join("\n");
}

export function Details({ trace }: { trace: Trace }) {
  const d = trace.event.details.value;
  const problem = trace.event.problem.value;
  if (problem) return <ProblemPanel small problem={problem} retry={() => void trace.event.again()} />;
  if (!trace.event.id.value)
    return <p class="none">Click an event, or press <kbd>.</kbd> for the first one in view.</p>;
  if (!d) return <Loading what="Reading the event…" />;
  const shown = d.display_name || d.name;
  return (
    <div class="details">
      <div class="details-head">
        <h2>{shown || <i>no name</i>}</h2>
        <span class="row">
          <button type="button" class="tool" disabled={d.previous === null} title="Previous on the row (,)" aria-label="Previous event" onClick={() => void trace.neighbour(-1)}><Icon name="prev" /></button>
          <button type="button" class="tool" disabled={d.next === null} title="Next on the row (.)" aria-label="Next event" onClick={() => void trace.neighbour(1)}><Icon name="next" /></button>
          <button type="button" class="tool" title="Fit in view (F)" aria-label="Fit in view" onClick={() => trace.fit()}><Icon name="fit" /></button>
          <Copy text={() => asText(d)} label="Copy" title="Copy the event as text" />
        </span>
      </div>
      {d.display_name !== "" && d.display_name !== d.name && <p class="long-name">{d.name}</p>}
      <div class="details-body">
        <div>
          <Facts trace={trace} d={d} />
          {d.flows.length > 0 && (
            <>
              <h3>Flows</h3>
              <ul class="flows">{d.flows.slice(0, FLOWS).map((f, i) => <FlowLink key={i} trace={trace} flow={f} />)}</ul>
              {d.flows.length > FLOWS && <p class="none">and {count(d.flows.length - FLOWS)} more</p>}
            </>
          )}
          <NearOps trace={trace} d={d} />
          <TransferParts trace={trace} d={d} />
        </div>
        <Arguments trace={trace} d={d} />
      </div>
    </div>
  );
}
