// The line that says how much of a run a page is from, and what of it is not to be trusted.
import type { Report } from "../api/report";
import { asNumber, show } from "./units";
import { bytes, count, plural } from "./format";

export interface CoverageLine {
  parts: string[];
  warnings: string[]; // of these, what is missing
  title: string; // what stands behind them
}

type Metrics = Pick<Report, "metrics">;

function metric(r: Metrics | null, id: string): Report["metrics"][number] | undefined {
  return r?.metrics.find((m) => m.id === id);
}

/** 0 where it is not known. */
function numberOf(r: Metrics | null, id: string): number {
  const n = asNumber(metric(r, id)?.value ?? null);
  return n > 0 ? n : 0;
}

function text(r: Metrics | null, id: string): string {
  const m = metric(r, id);
  return m && m.value !== null ? show(m.value, m.unit) : "";
}

/** "4 of 16 hosts", or how many there are. */
function ofExpected(n: number, expected: number, word: string): string {
  return expected > n ? `${count(n)} of ${plural(expected, word)}` : plural(n, word);
}

function dropped(c: Metrics | null): string {
  const m = metric(c, "dropped_events");
  if (!m) return "";
  return m.value === null ? "an unknown number of events dropped" : `${plural(asNumber(m.value), "event")} dropped`;
}

/** r: what the page shows; c: the report `coverage` of the same hosts, null while it is not there. */
export function coverageLine(r: Report, c: Report | null, size: number, decoder: string): CoverageLine {
  const warnings: string[] = [];
  const hosts = ofExpected(r.hosts.length, Math.max(numberOf(c, "expected_hosts"), r.hosts.length + r.missing_hosts.length), "host");
  if (hosts.includes(" of ")) warnings.push(hosts);
  const n = numberOf(c, "devices");
  const devices = n ? ofExpected(n, numberOf(c, "expected_devices"), "device") : "";
  if (devices.includes(" of ")) warnings.push(devices);
  const lost = dropped(c);
  if (lost && asNumber(metric(c, "dropped_events")?.value ?? null) !== 0) warnings.push(lost);
  const several = r.hosts.length > 1;
  const clock = several ? text(r, "clock_offset") : "";
  const uncertain = !clock && several ? metric(r, "clock_offset")?.reason : undefined;
  const told = r.notes.filter((x) => x.code === "profiler_error").length;
  const cores = text(r, "cores");
  const parts = [
    hosts, devices || (cores && `${cores} cores`), text(r, "device_type"), size > 0 && bytes(size), lost, clock && `clocks within ${clock}`,
    uncertain !== undefined && "clocks not compared", told > 0 && plural(told, "error of the profiler", "errors of the profiler"),
    decoder && `xprofd ${decoder}`,
  ].filter((p): p is string => typeof p === "string" && p !== "");
  const about = (id: string, label: string): string => {
    const m = metric(c, id);
    const said = m?.value === null ? m.reason : m?.note;
    return said ? `${label}: ${said}` : "";
  };
  const title = [
    ...r.hosts.slice(0, 50), uncertain ? `Clocks: ${uncertain}` : "", about("expected_hosts", "Hosts expected"), about("expected_devices", "Devices expected"),
    about("dropped_events", "Dropped events"),
  ].filter(Boolean).join("\n");
  return { parts, warnings, title };
}
