// The line below a page's title: hosts and devices of as many as there should be, what was dropped,
// clocks, size, what read it.
import type { Report } from "../api/report";
import { coverageLine } from "../model/coverage";
import { coverageOf } from "../shell/coverage";

export function Coverage({ r, root, run, hosts, size, decoder }: { r: Report; root: string; run: string; hosts: readonly string[]; size: number; decoder: string }) {
  const { parts, warnings, title } = coverageLine(r, coverageOf(root, run, hosts).value, size, decoder);
  return (
    <p class="coverage" title={title}>
      From {parts.map((p, i) => <span key={i}>{i > 0 && " · "}{warnings.includes(p) ? <b class="warned">{p}</b> : p}</span>)}
    </p>
  );
}
