// Kernels of TPUs: which units each kept busy, as a picture, and two of them (two versions, two
// devices) beside each other.
import { useMemo } from "preact/hooks";
import { HeatMap } from "../../charts/heat";
import { plural } from "../../model/format";
import { comparison, kernelNames, kernelSeries } from "../../model/hardware";
import { TablePart, type PartProps } from "./parts";
import { Choice } from "./special";

export function KernelsPart(p: PartProps) {
  const { report, s } = p;
  const t = report.tables.find((x) => x.id === "kernels");
  const series = useMemo(() => (t ? kernelSeries(t) : null), [t]);
  if (!t || !series || t.rows.length === 0) return null;
  const names = kernelNames(t);
  const options = names.map((n, i) => [String(i), n] as const);
  const pick = (name: string, usual: number): number => {
    const i = Number(s.args[name] ?? usual);
    return Number.isInteger(i) && i >= 0 && i < names.length ? i : usual;
  };
  const counted = names.map((_, i) => i).filter((i) => series.points[i]!.some((v, k) => k > 0 && v !== null));
  const [one, other] = [pick("one", counted[0] ?? 0), pick("other", counted[1] ?? Math.min(1, names.length - 1))];
  return (
    <>
      <section class="panel" aria-label={series.title}>
        <div class="panel-head">
          <h2>{series.title}</h2>
          <output class="table-count">{plural(series.names.length, "unit")} × {plural(series.points.length, "kernel")}</output>
        </div>
        <HeatMap s={series} />
      </section>
      {names.length > 1 && (
        <div class="counter-part">
          <div class="controls">
            <Choice name="one" label="Compare" value={String(one)} options={options} />
            <Choice name="other" label="with" value={String(other)} options={options} />
          </div>
          <TablePart {...p} t={comparison(t, one, other)} first={false} />
        </div>
      )}
    </>
  );
}

