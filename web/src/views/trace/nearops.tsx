// What the op of an event is made of, and who uses it: asked for when it is opened.
import { signal, useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { asProblem, isAbort } from "../../api/client";
import { asReport, type Report } from "../../api/report";
import type { EventDetails } from "../../api/types";
import { nearOf, opOfEvent, type Near, type NearOp } from "../../model/near";
import type { Trace } from "./trace";

const NODES = 60;
const unfolded = signal(false); // stays so from event to event

export function NearOps({ trace, d }: { trace: Trace; d: EventDetails }) {
  const known = opOfEvent(d);
  if (!known) return null;
  return (
    <details class="near" open={unfolded.value} onToggle={(e) => (unfolded.value = e.currentTarget.open)}>
      <summary>Operands and users of {known.op}</summary>
      {unfolded.value && <NearList key={`${known.program} ${known.op}`} trace={trace} {...known} />}
    </details>
  );
}

function NearList({ trace, op, program }: { trace: Trace; op: string; program: string }) {
  const near = useSignal<Near | null>(null);
  const said = useSignal("…");
  useEffect(() => {
    const abort = new AbortController();
    const asked = { ...trace.who, tool: "graph_viewer", node_name: op, radius: 1, nodes: NODES, ...(program ? { program_id: program } : {}) };
    trace.api.json<Partial<Report>>("report", asked, abort.signal).then(
      (got) => {
        near.value = nearOf(asReport(got), op);
        said.value = "The profile does not hold what surrounds this op.";
      },
      (e: unknown) => isAbort(e) || (said.value = asProblem(e).message),
    );
    return () => abort.abort();
  }, []);
  if (!near.value) return <p class="none">{said.value}</p>;
  const { operands, users, more } = near.value;
  const graph = `${trace.api.root}graph_viewer?run=${encodeURIComponent(trace.who.run)}&host=${encodeURIComponent(trace.who.host)}&op=${encodeURIComponent(op)}${program ? `&program=${program}` : ""}`;
  return (
    <>
      <Ops title="Operands" list={operands} go={(n) => void trace.goToOp(n, -1)} />
      <Ops title="Users" list={users} go={(n) => void trace.goToOp(n, 1)} />
      <p class="none">{more > 0 && `${more} more are not listed. `}<a href={graph}>As a graph</a></p>
    </>
  );
}

function Ops({ title, list, go }: { title: string; list: readonly NearOp[]; go: (name: string) => void }) {
  return (
    <>
      <h3>{title}</h3>
      {list.length === 0 ? <p class="none">none</p> : (
        <ul class="flows">
          {list.map((o) => (
            <li key={o.name} title={o.shape}>
              {o.ran ? <button type="button" class="link" onClick={() => go(o.name)}>{o.name}</button> : o.name}
              <span> {o.opcode}{o.ran ? "" : " · did not run by itself"}</span>
            </li>
          ))}
        </ul>
      )}
    </>
  );
}
