// The selected area as a flame graph.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { asProblem, isAbort, type Problem } from "../../api/client";
import { decodeWindow } from "../../api/window";
import { Icicle } from "../../charts/icicle";
import { flameOf, type Flame } from "../../model/flame";
import { duration, percent } from "../../model/format";
import type { Area } from "../../model/url";
import { ProblemPanel } from "../../widgets/problem";
import { Loading } from "../../widgets/shell";
import type { Trace } from "./trace";

const PX = 16384;
const BYTES = 4 << 20;

export function FlameGraph({ trace, area }: { trace: Trace; area: Area }) {
  const flame = useSignal<Flame | null>(null);
  const problem = useSignal<Problem | null>(null);
  const again = useSignal(0);
  useEffect(() => {
    const abort = new AbortController();
    flame.value = problem.value = null;
    const planes = trace.tracks.peek()?.planes ?? [];
    const nameOf = (line: number): string => {
      const plane = planes.find((p) => p.lines.some((l) => l.line === line));
      return plane ? `${plane.name} › ${plane.lines.find((l) => l.line === line)!.name || "(no name)"}` : `line ${line}`;
    };
    trace.api.bytes("window", { ...trace.who, t0: area.t0, t1: area.t1, px: PX, max_bytes: BYTES, rows: area.rows || undefined }, abort.signal).then(
      (body) => (flame.value = flameOf(decodeWindow(body), area.t0, area.t1, nameOf)),
      (e: unknown) => isAbort(e) || (problem.value = asProblem(e)),
    );
    return () => abort.abort();
  }, [area.t0, area.t1, area.rows, again.value]);
  const f = flame.value;
  if (problem.value) return <ProblemPanel small problem={problem.value} retry={() => again.value++} />;
  if (!f) return <Loading what="Reading the events of the area…" />;
  if (f.tree.nodes.length === 0) return <p class="none">No event overlaps this area.</p>;
  return (
    <>
      <p class="none">
        {duration(f.total)} in events that no other encloses; a click zooms in.
        {f.merged > 0 && ` ${percent(f.merged, f.total) || "Some"} of it is in events that are too short to tell apart here: choose a shorter area or fewer rows.`}
        {f.cut && " There are more kinds of stacks than fit; the rest counts for what encloses them."}
      </p>
      <Icicle tree={f.tree} weight={0} isChosen={() => false} />
    </>
  );
}
