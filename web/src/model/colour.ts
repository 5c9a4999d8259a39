// Colour says what kind of work it is: the hue's range is the category, the place in the range the
// operation (fusion.1 and fusion.2 are both "fusion"), the shade its full name. Stable by name.

export type Category = "compute" | "communication" | "copy" | "input" | "host" | "idle";

export const categories: { id: Category; label: string }[] = [
  { id: "compute", label: "Compute" },
  { id: "communication", label: "Communication" },
  { id: "copy", label: "Copy" },
  { id: "input", label: "Input" },
  { id: "host", label: "Host" },
  { id: "idle", label: "Idle, waiting" },
];

const COMMUNICATION =
  /all-?reduce|all-?gather|reduce-?scatter|all-?to-?all|collective|ppermute|nccl|rccl|psum|megascale|\bsend\b|\brecv\b/;
const INPUT = /infeed|outfeed|iterator|dataset|prefetch|datapipeline|get_?next/;
const COPY = /copy|memcpy|memset|transfer|\bdma\b|h2d|d2h|d2d|tohost|fromhost|hosttodevice|devicetohost/;
const IDLE = /\bidle\b|\bwait|wait\b|sleep|blocked|barrier|\bpark/;

/** The instruction's own name where the event is named by its whole HLO text. */
export function headOf(name: string): string {
  const at = name.indexOf(" = ");
  return at > 0 ? name.slice(0, at) : name;
}

export function categorize(name: string, kind: "device" | "host" | "other"): Category {
  const n = headOf(name).toLowerCase();
  if (COMMUNICATION.test(n)) return "communication";
  if (INPUT.test(n)) return "input";
  if (COPY.test(n)) return "copy";
  if (IDLE.test(n)) return "idle";
  return kind === "device" ? "compute" : "host";
}

/** FNV-1a, 32 bits, finished so that close names land far apart. */
export function hashName(name: string): number {
  let h = 0x811c9dc5;
  for (let i = 0; i < name.length; i++) h = Math.imul(h ^ name.charCodeAt(i), 0x01000193);
  h = Math.imul(h ^ (h >>> 15), 0x2c1b3c6d);
  h = Math.imul(h ^ (h >>> 12), 0x297a2d39);
  return (h ^ (h >>> 15)) >>> 0;
}

export interface Palette {
  hues: Record<Category, [from: number, to: number]>;
  chroma: Record<Category, number>;
  lift?: Record<Category, number>; // lightness of a category beside the middle
  light: number; // middle lightness
  spread: number;
}

const hues: Palette["hues"] = {
  compute: [190, 305], communication: [22, 58], copy: [78, 108], input: [335, 365], host: [118, 192], idle: [260, 261],
};
const chroma: Palette["chroma"] = { compute: 0.1, communication: 0.135, copy: 0.115, input: 0.12, host: 0.085, idle: 0.012 };

export const lightPalette: Palette = { hues, chroma, light: 0.76, spread: 0.055 };
export const darkPalette: Palette = { hues, chroma, light: 0.69, spread: 0.06 };

// Told apart by people who see two of the three primaries: blue, vermilion, yellow, purple, green of
// unlike lightness, after Okabe and Ito.
const safeHues: Palette["hues"] = {
  compute: [238, 256], communication: [42, 54], copy: [98, 106], input: [338, 350], host: [164, 174], idle: [260, 261],
};
const safeChroma: Palette["chroma"] = { compute: 0.13, communication: 0.15, copy: 0.14, input: 0.1, host: 0.11, idle: 0.008 };
const safeLift: Palette["lift"] = { compute: -0.08, communication: -0.05, copy: 0.12, input: 0.03, host: 0.0, idle: 0.1 };

// One colour a category, as far apart as text on them allows.
const contrastChroma: Palette["chroma"] = { compute: 0.15, communication: 0.19, copy: 0.17, input: 0.19, host: 0.17, idle: 0 };
const contrastHues: Palette["hues"] = {
  compute: [255, 256], communication: [45, 46], copy: [103, 104], input: [345, 346], host: [150, 151], idle: [260, 261],
};

export type PaletteName = "usual" | "safe" | "contrast";

export const palettes: Record<PaletteName, { label: string; light: Palette; dark: Palette }> = {
  usual: { label: "Usual", light: lightPalette, dark: darkPalette },
  safe: {
    label: "Colour-blind safe",
    light: { hues: safeHues, chroma: safeChroma, lift: safeLift, light: 0.74, spread: 0.03 },
    dark: { hues: safeHues, chroma: safeChroma, lift: safeLift, light: 0.72, spread: 0.03 },
  },
  contrast: {
    label: "High contrast",
    light: { hues: contrastHues, chroma: contrastChroma, light: 0.76, spread: 0 },
    dark: { hues: contrastHues, chroma: contrastChroma, light: 0.8, spread: 0 },
  },
};

/** OKLCH -> #rrggbb, clipped to sRGB. */
export function oklch(l: number, c: number, hue: number): string {
  const a = c * Math.cos((hue * Math.PI) / 180);
  const b = c * Math.sin((hue * Math.PI) / 180);
  const l3 = (l + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m3 = (l - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s3 = (l - 0.0894841775 * a - 1.291485548 * b) ** 3;
  const linear = [
    4.0767416621 * l3 - 3.3077115913 * m3 + 0.2309699292 * s3,
    -1.2684380046 * l3 + 2.6097574011 * m3 - 0.3413193965 * s3,
    -0.0041960863 * l3 - 0.7034186147 * m3 + 1.707614701 * s3,
  ];
  const hex = linear.map((x) => {
    const y = x <= 0.0031308 ? 12.92 * x : 1.055 * x ** (1 / 2.4) - 0.055;
    return Math.round(Math.min(1, Math.max(0, y)) * 255).toString(16).padStart(2, "0");
  });
  return `#${hex.join("")}`;
}

/** fusion.12, %fusion.12 = …, fusion_12, fusion: one operation. */
export function operationOf(name: string): string {
  return headOf(name).replace(/^%/, "").replace(/[._:#-]?\d+(?:[._]\d+)*$/, "");
}

export function colourOf(name: string, category: Category, palette: Palette): string {
  const place = hashName(operationOf(name)) / 2 ** 32;
  const shade = (hashName(name) % 1024) / 1023;
  const [from, to] = palette.hues[category];
  const lightness = palette.light + (palette.lift?.[category] ?? 0) + (shade * 2 - 1) * palette.spread;
  return oklch(lightness, palette.chroma[category], from + place * (to - from));
}
