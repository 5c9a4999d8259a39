// All that the table of ops says about the chosen op, beside a tree that has no room for it.
import { useMemo } from "preact/hooks";
import { Api } from "../../api/client";
import { nameFilter } from "../../model/hardware";
import { opColumns, opOf, sameOp, timeOf } from "../../model/ops";
import { rangeArguments, timelineHref } from "../../model/toolurl";
import { RowCard } from "./card";
import { useReport } from "./load";
import type { PartProps } from "./parts";
import { set } from "./state";

export function OpCard({ s, root }: PartProps) {
  const api = useMemo(() => new Api(root), [root]);
  const { report } = useReport(api, { run: s.run, tool: "hlo_stats", host: s.hosts, table: "ops", filter: nameFilter(s.op), limit: 200, ...rangeArguments(s) });
  const t = report.value?.tables[0];
  if (!t) return null;
  const columns = opColumns(t);
  const row = t.rows.find((r) => sameOp(s, opOf(r, columns)));
  if (!row) return null;
  const time = timeOf(row, columns, t.columns[columns.duration]?.unit ?? "");
  const href = time ? timelineHref(root, s, { op: s.op, program: s.program, begin: time.begin, duration: time.duration, ...(time.host ? { host: time.host } : {}) }) : "";
  return <RowCard table={t} row={row} href={href} close={() => set({ op: "", program: "" })} />;
}
