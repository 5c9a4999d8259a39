// The op that was chosen, on every page of the run, with the ways to see more of it.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { Api } from "../../api/client";
import { big } from "../../api/json";
import type { Report } from "../../api/report";
import type { Hit, SearchAnswer } from "../../api/types";
import { headOf } from "../../model/colour";
import { plural } from "../../model/format";
import { findOp, timeOf } from "../../model/ops";
import { tools } from "../../model/tools";
import { elsewhere, timelineHref, type ToolUrl } from "../../model/toolurl";
import { toolsOf } from "../../shell/runtools";
import { Copy } from "../../widgets/copy";
import { Icon } from "../../widgets/icon";
import { set } from "./state";

const WHERE = ["hlo_stats", "op_profile", "roofline_model", "graph_viewer", "memory_viewer"];

interface Found {
  hit: Hit;
  total: number;
  host: string;
}

/** The op's first run on a host, from the profile itself: tables do not always say when. */
function useFirst(api: Api, s: ToolUrl, hosts: readonly string[]) {
  const found = useSignal<Found | null>(null);
  const host = s.hosts[0] ?? hosts[0] ?? "";
  useEffect(() => {
    found.value = null;
    if (!s.op || !host) return undefined;
    const abort = new AbortController();
    api.json<SearchAnswer>("search", { run: s.run, host, q: `name:"${s.op.replaceAll('"', " ")}"`, limit: 50 }, abort.signal).then(
      (got) => {
        const hit = got.hits.find((h) => headOf(h.name).replace(/^%/, "") === s.op);
        if (hit) found.value = { hit, total: got.total, host };
      },
      () => undefined, // the link then leads to the timeline as it is
    );
    return () => abort.abort();
  }, [api, s.run, s.op, host]);
  return found;
}

export function OpStrip({ api, s, root, report, page, hosts }: {
  api: Api; s: ToolUrl; root: string; report: Report | null; page: string; hosts: readonly string[];
}) {
  const first = useFirst(api, s, hosts).value;
  if (!s.op) return null;
  const states = toolsOf(root, s.run).value;
  const found = report && findOp(report, s);
  const isKernel = found?.row.some((v) => v === "custom-call"); // by its category
  const time = found && timeOf(found.row, found.columns, found.table.columns[found.columns.duration]?.unit ?? "");
  const timeline = first
    ? `${timelineHref(root, s, { op: s.op, program: s.program, host: first.host, begin: big(first.hit.begin_ps), duration: big(first.hit.duration_ps) })}&sel=${first.hit.id}`
    : timelineHref(root, s, {
        op: s.op, program: s.program, begin: time?.begin ?? null, duration: time?.duration ?? null, ...(time?.host ? { host: time.host } : {}),
      });
  return (
    <section class="op-strip" aria-label="Chosen op">
      <span class="op-strip-word">Chosen op</span>
      <code title={s.program ? `${s.op}\nprogram ${s.program}` : s.op}>{s.op}</code>
      <Copy text={() => s.op} title="Copy the op's name" />
      <span class="op-links">
        <a href={timeline} title={first ? `Its first run on ${first.host}; the others are lit` : "Its runs are lit"}><Icon name="timeline" /> Timeline{first && first.total > 1 && <span class="ago">{plural(first.total, "hit")}</span>}</a>
        {tools.filter((t) => (WHERE.includes(t.id) || (t.id === "kernel_utilization" && isKernel)) && t.id !== page && states?.get(t.id)?.available !== false).map((t) => (
          <a key={t.id} href={`${root}${t.id}${elsewhere(s)}`}><Icon name={t.icon} /> {t.label}</a>
        ))}
      </span>
      <button type="button" class="tool" title="Choose no op" aria-label="Choose no op" onClick={() => set({ op: "", program: "" })}><Icon name="close" /></button>
    </section>
  );
}
