// The search grammar, as far as the page itself can judge it: which names to keep bright. The
// server finds and counts the hits.

interface Term {
  field: "name" | "line" | "plane";
  not: boolean;
  text: string;
}

export interface Query {
  terms: Term[];
}

/** How long an event may be, in ps, both ends included. */
export interface Lasting {
  least: number;
  most: number;
}

// [-][field:]word or "two words"; dur>… is about times, below.
const WORD = /(-?)(?:(name|line|plane):)?(?:"([^"]*)"?|(\S+))/g;

export function fold(text: string): string {
  return text.replace(/[A-Z]/g, (c) => c.toLowerCase());
}

export function parseQuery(q: string): Query {
  const terms: Term[] = [];
  for (const m of q.matchAll(WORD)) {
    const text = m[3] ?? m[4] ?? "";
    if (text === "" || (m[4] !== undefined && isDuration(text))) continue;
    terms.push({ field: (m[2] as Term["field"]) ?? "name", not: m[1] === "-", text: fold(text) });
  }
  return { terms };
}

function holds(query: Query, field: Term["field"], value: string): boolean {
  const folded = fold(value);
  return query.terms.every((t) => t.field !== field || folded.includes(t.text) !== t.not);
}

export function nameMatches(query: Query, name: string): boolean {
  return holds(query, "name", name);
}

export function rowMatches(query: Query, plane: string, line: string): boolean {
  return holds(query, "plane", plane) && holds(query, "line", line);
}

// --- durations: dur>10us, dur<=1.5ms ---

const DURATION = /^dur(>=|<=|>|<)(\d+(?:\.\d+)?)(ps|ns|us|µs|ms|s)$/;
const UNITS: Record<string, number> = { ps: 1, ns: 1e3, us: 1e6, "µs": 1e6, ms: 1e9, s: 1e12 };

function isDuration(word: string): boolean {
  return /^dur[<>]/.test(word);
}

/** 10us, 1.5ms */
export function isTime(text: string): boolean {
  return DURATION.test(`dur>${text}`);
}

/** null: any. */
export function parseLasting(q: string): Lasting | null {
  const out = { least: 0, most: Infinity };
  for (const word of q.split(/\s+/)) {
    const m = DURATION.exec(word);
    if (!m) continue;
    const ps = Math.round(Number(m[2]) * UNITS[m[3]!]!);
    if (m[1]!.startsWith(">")) out.least = Math.max(out.least, m[1] === ">" ? ps + 1 : ps);
    else out.most = Math.min(out.most, m[1] === "<" ? ps - 1 : ps);
  }
  return out.least > 0 || out.most < Infinity ? out : null;
}

/** The query with a lower (upper) bound of durations in place of its own; "" takes it away. */
export function withLasting(q: string, end: "least" | "most", value: string): string {
  const sign = end === "least" ? ">" : "<";
  const others = q.split(/\s+/).filter((w) => w !== "" && !(isDuration(w) && w[3] === sign));
  return [...others, ...(value ? [`dur${sign}=${value}`] : [])].join(" ");
}

/** What the query says of that bound: "10us", or "". */
export function lastingText(q: string, end: "least" | "most"): string {
  const sign = end === "least" ? ">" : "<";
  const words = q.split(/\s+/).filter((w) => DURATION.test(w) && w[3] === sign);
  return words.length ? words[words.length - 1]!.replace(/^dur[<>]=?/, "") : "";
}
