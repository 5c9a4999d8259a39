// Where a run ran: hosts, cores, device, what the device can do; what is not known, with why.
import type { Metric, Report } from "../../api/report";
import { plural } from "../../model/format";
import { toolHref } from "../../model/toolurl";
import { exact, show } from "../../model/units";
import type { PartProps } from "./parts";

const PARTS = ["run_kind", "hosts", "cores", "device_type", "peak_flop_rate", "peak_hbm_rate", "clock_offset"];
const NAMED = 4; // hosts that are called by name

/** Figures that stand here and nowhere else on the page. */
export const isEnvironment = (id: string): boolean => PARTS.includes(id);

function hostNames(r: Report): string {
  const more = r.hosts.length - NAMED;
  return r.hosts.slice(0, NAMED).join(", ") + (more > 0 ? ` and ${plural(more, "other")}` : "");
}

function Part({ m, names, href }: { m: Metric; names: string; href: string }) {
  const value = m.value === null ? "" : show(m.value, m.unit);
  const about = m.value === null ? m.reason ?? "The profile does not say." : names || m.note;
  return (
    <div data-metric={m.id}>
      <dt title={m.definition}>{m.label}</dt>
      <dd>
        <b title={exact(m.value, m.unit)}>{m.value === null ? "n/a" : href ? <a href={href}>{value}</a> : value}</b>{" "}
        {about && about !== value && <span title={about}>{about}</span>}
      </dd>
    </div>
  );
}

export function EnvironmentPart({ report: r, s, root }: PartProps) {
  const parts = PARTS.flatMap((id) => r.metrics.find((m) => m.id === id) ?? []);
  if (parts.length === 0) return null;
  return (
    <section class="environment" aria-label="Run environment">
      <h2>Run environment</h2>
      <dl>
        {parts.map((m) => (
          <Part key={m.id} m={m} names={m.id === "hosts" ? hostNames(r) : ""} href={m.id === "clock_offset" ? toolHref(root, "pod_viewer", s) : ""} />
        ))}
      </dl>
    </section>
  );
}
