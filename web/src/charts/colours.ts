// Colours of series. What has a category in the timeline has its colour here too; the rest take
// from a palette in their order. All are custom properties, so that a theme's change needs no code.

const MEANING: [RegExp, string][] = [
  [/\bidle\b|unused|free|other|\brest\b|^nothing$/i, "--k-idle"],
  [/\bwait|stall/i, "--k-wait"],
  [/infeed|outfeed|\binput\b|\boutput\b|h2d|d2h|transfer/i, "--k-input"],
  [/all-?reduce|all-?gather|collective|communicat|send|recv|device.?to.?device|megascale|network|slice/i, "--k-communication"],
  [/\bcopy|memcpy|\bdma\b|data formatting/i, "--k-copy"],
  [/\bhost\b|launch|compil|python/i, "--k-host"],
  [/\bcompute\b|\bcomputation\b|convolution|matmul|\bdot\b/i, "--k-compute"],
];

export const PALETTE = 8;

/** Colours of the palette that look like one with a meaning. */
const ALIKE: Record<string, number> = { "--k-compute": 0, "--k-host": 1, "--k-communication": 2, "--k-input": 4, "--k-copy": 6 };

/** One colour a name, no colour twice while there are enough. */
export function seriesColours(names: readonly string[]): string[] {
  const taken = new Set<string>();
  const out = names.map((name) => {
    const hit = MEANING.find(([re, v]) => re.test(name) && !taken.has(v))?.[1];
    if (hit) taken.add(hit);
    return hit ?? "";
  });
  const near = new Set([...taken].map((v) => ALIKE[v]));
  const free = Array.from({ length: PALETTE }, (_, i) => i).filter((i) => !near.has(i));
  let next = 0;
  return out.map((v) => `var(${v || `--c${free[next++ % free.length]}`})`);
}
