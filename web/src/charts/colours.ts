// Colours of series. What has a category in the timeline has its colour here too; the rest take
// from a palette in their order. All are custom properties, so that a theme's change needs no code.

const MEANING: [RegExp, string][] = [
  [/\bidle\b|wait|stall|unused|free|other|\brest\b/i, "--k-idle"],
  [/infeed|outfeed|\binput\b|\boutput\b|h2d|d2h|transfer/i, "--k-input"],
  [/all-?reduce|all-?gather|collective|communicat|send|recv|device.?to.?device|megascale|network|slice/i, "--k-communication"],
  [/\bcopy|memcpy|\bdma\b|data formatting/i, "--k-copy"],
  [/\bhost\b|launch|compil|python/i, "--k-host"],
  [/\bcompute\b|\bcomputation\b|convolution|matmul|\bdot\b/i, "--k-compute"],
];

export const PALETTE = 8;

/** One colour a name, no colour twice while there are enough. */
export function seriesColours(names: readonly string[]): string[] {
  const taken = new Set<string>();
  const out = names.map((name) => {
    const hit = MEANING.find(([re, v]) => re.test(name) && !taken.has(v))?.[1];
    if (hit) taken.add(hit);
    return hit ?? "";
  });
  let next = 0;
  return out.map((v) => `var(${v || `--c${next++ % PALETTE}`})`);
}
