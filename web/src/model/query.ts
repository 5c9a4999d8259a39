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

// [-][field:]word or "two words"; dur>… is the server's.
const WORD = /(-?)(?:(name|line|plane):)?(?:"([^"]*)"?|(\S+))/g;

export function fold(text: string): string {
  return text.replace(/[A-Z]/g, (c) => c.toLowerCase());
}

export function parseQuery(q: string): Query {
  const terms: Term[] = [];
  for (const m of q.matchAll(WORD)) {
    const text = m[3] ?? m[4] ?? "";
    if (text === "" || (m[4] !== undefined && /^dur[<>]/.test(text))) continue;
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
