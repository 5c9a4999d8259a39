// JSON.parse rounds integers beyond 2^53, and times in picoseconds get there after 2.5 hours.
// parseExact gives those as bigint. One look over the text finds whether there are any at all;
// mostly there are none, and then it is JSON.parse and nothing else.

export type Int = number | bigint;

const MARK = "\u0001int:";

const DIGIT0 = 48;
const DIGIT9 = 57;
const QUOTE = 34;
const BACKSLASH = 92;
const MINUS = 45;

function endOfString(text: string, at: number): number {
  for (let i = at + 1; i < text.length; i++) {
    const c = text.charCodeAt(i);
    if (c === BACKSLASH) i++;
    else if (c === QUOTE) return i + 1;
  }
  return text.length;
}

function isNumberPart(c: number): boolean {
  // digits + - . e E
  return (c >= DIGIT0 && c <= DIGIT9) || c === 43 || c === MINUS || c === 46 || c === 69 || c === 101;
}

/** [from, to) of each integer in the text, outside strings, that a double does not hold exactly. */
export function wideIntegers(text: string): [number, number][] {
  const found: [number, number][] = [];
  for (let i = 0; i < text.length; ) {
    const c = text.charCodeAt(i);
    if (c === QUOTE) {
      i = endOfString(text, i);
    } else if (c === MINUS || (c >= DIGIT0 && c <= DIGIT9)) {
      const from = i;
      while (i < text.length && isNumberPart(text.charCodeAt(i))) i++;
      if (i - from >= 16) {
        const part = text.slice(from, i);
        if (/^-?\d+$/.test(part) && !Number.isSafeInteger(Number(part))) found.push([from, i]);
      }
    } else {
      i++;
    }
  }
  return found;
}

export function parseExact(text: string): unknown {
  const wide = wideIntegers(text);
  if (wide.length === 0) return JSON.parse(text);
  const parts: string[] = [];
  let at = 0;
  for (const [from, to] of wide) {
    parts.push(text.slice(at, from), `"\\u0001int:${text.slice(from, to)}"`);
    at = to;
  }
  parts.push(text.slice(at));
  return JSON.parse(parts.join(""), (_key, value: unknown) =>
    typeof value === "string" && value.startsWith(MARK) && /^-?\d+$/.test(value.slice(MARK.length))
      ? BigInt(value.slice(MARK.length))
      : value,
  );
}

export function big(x: Int | null | undefined): bigint {
  return typeof x === "bigint" ? x : BigInt(Math.round(x ?? 0));
}
