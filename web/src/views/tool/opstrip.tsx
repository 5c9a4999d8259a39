// The op that was chosen, on every page of the run, with the ways to see more of it.
import type { Report } from "../../api/report";
import { findOp, timeOf } from "../../model/ops";
import { tools } from "../../model/tools";
import { elsewhere, timelineHref, type ToolUrl } from "../../model/toolurl";
import { toolsOf } from "../../shell/runtools";
import { Copy } from "../../widgets/copy";
import { Icon } from "../../widgets/icon";
import { set } from "./state";

const WHERE = ["hlo_stats", "op_profile", "roofline_model", "graph_viewer", "memory_viewer"];

export function OpStrip({ s, root, report, page }: { s: ToolUrl; root: string; report: Report | null; page: string }) {
  if (!s.op) return null;
  const states = toolsOf(root, s.run).value;
  const found = report && findOp(report, s);
  const time = found && timeOf(found.row, found.columns, found.table.columns[found.columns.duration]?.unit ?? "");
  const timeline = timelineHref(root, s, {
    op: s.op, program: s.program, begin: time?.begin ?? null, duration: time?.duration ?? null, ...(time?.host ? { host: time.host } : {}),
  });
  return (
    <section class="op-strip" aria-label="Chosen op">
      <span class="op-strip-word">Chosen op</span>
      <code title={s.program ? `${s.op}\nprogram ${s.program}` : s.op}>{s.op}</code>
      <Copy text={() => s.op} title="Copy the op's name" />
      <span class="op-links">
        <a href={timeline}><Icon name="timeline" /> Timeline</a>
        {tools.filter((t) => WHERE.includes(t.id) && t.id !== page && states?.get(t.id)?.available !== false).map((t) => (
          <a key={t.id} href={`${root}${t.id}${elsewhere(s)}`}><Icon name={t.icon} /> {t.label}</a>
        ))}
      </span>
      <button type="button" class="tool" title="Choose no op" aria-label="Choose no op" onClick={() => set({ op: "", program: "" })}><Icon name="close" /></button>
    </section>
  );
}
