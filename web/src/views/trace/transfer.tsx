// What else belongs to the transfer between slices that an event is a part of: asked for when it is opened.
import { signal, useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { asProblem, isAbort } from "../../api/client";
import { asReport, type Report } from "../../api/report";
import type { EventDetails } from "../../api/types";
import { actionsOf, deviceOfPart, linksOf, momentOfPart, type Action } from "../../model/actions";
import { timelineHref } from "../../model/toolurl";
import { show } from "../../model/units";
import { current } from "../tool/state";
import type { Trace } from "./trace";

const unfolded = signal(false); // stays so from event to event

export function TransferParts({ trace, d }: { trace: Trace; d: EventDetails }) {
  const at = momentOfPart(d);
  if (at === null) return null;
  return (
    <details class="near" open={unfolded.value} onToggle={(e) => (unfolded.value = e.currentTarget.open)}>
      <summary>The transfer between slices</summary>
      {unfolded.value && <Parts key={`${at} ${d.plane_name} ${trace.who.host}`} trace={trace} at={String(at)} d={d} />}
    </details>
  );
}

function Parts({ trace, at, d }: { trace: Trace; at: string; d: EventDetails }) {
  const got = useSignal<Report | null>(null);
  const device = deviceOfPart(d);
  const said = useSignal("…");
  useEffect(() => {
    const abort = new AbortController();
    trace.api.json<Partial<Report>>("report", { ...trace.who, tool: "megascale_stats", at, ...(device && { device }) }, abort.signal).then(
      (x) => (got.value = asReport(x)),
      (e: unknown) => isAbort(e) || (said.value = asProblem(e).status === 400 ? "No transfer is known that this event is a part of." : asProblem(e).message),
    );
    return () => abort.abort();
  }, []);
  const r = got.value;
  const t = r?.tables.find((x) => x.id === "actions");
  if (!r || !t) return <p class="none">{said.value}</p>;
  const actions = actionsOf(t);
  const links = linksOf(r.tables.find((x) => x.id === "action_links"), actions.length);
  const own = actions.findIndex((a) => String(a.begin) === at && a.plane === d.plane_name && (a.name === d.display_name || a.name === d.name));
  const follows = links.filter((l) => l.to === own).map((l) => actions[l.from]!);
  const leads = links.filter((l) => l.from === own).map((l) => actions[l.to]!);
  const rest = actions.filter((a, i) => i !== own && !follows.includes(a) && !leads.includes(a));
  const key = String(r.metrics.find((m) => m.id === "occurrence")?.value ?? "");
  const page = `${trace.api.root}megascale_stats?run=${encodeURIComponent(trace.who.run)}&occurrence=${encodeURIComponent(key)}`;
  return (
    <>
      {own >= 0 && <List title="Follows" list={follows} trace={trace} />}
      {own >= 0 && <List title="Leads to" list={leads} trace={trace} />}
      <List title={own >= 0 ? "Other parts" : "Its parts"} list={rest} trace={trace} />
      <p class="none"><a href={page}>{String(r.metrics.find((m) => m.id === "collective")?.value ?? "")} as a picture</a></p>
    </>
  );
}

function List({ title, list, trace }: { title: string; list: readonly Action[]; trace: Trace }) {
  const s = { ...current(), run: trace.who.run };
  return (
    <>
      <h3>{title}</h3>
      {list.length === 0 ? <p class="none">none</p> : (
        <ul class="flows">
          {list.map((a, i) => (
            <li key={i} title={a.plane}>
              <a href={timelineHref(trace.api.root, s, { host: trace.who.host, event: a.name, begin: a.begin, duration: Number.isNaN(a.duration) ? null : Math.round(a.duration) })}>{a.name}</a>
              <span> {a.kind} · {Number.isNaN(a.duration) ? "" : `${show(a.duration, "ps")}, `}{a.plane.replace(/^\/device:/, "")}</span>
            </li>
          ))}
        </ul>
      )}
    </>
  );
}
