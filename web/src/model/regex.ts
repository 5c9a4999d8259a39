// Regular expressions that cannot take long: what lib/base/regex.h is for the server, with the same
// grammar. All places of a pattern at once are 64 bits, as two numbers; a step is eight look-ups.

const PLACES = 64;
const DEPTH = 16;
const BEGIN = 256;
const END = 257;

type Bits = [low: number, high: number];

interface Piece {
  first: Bits;
  last: Bits;
  none: boolean; // it may be nothing
}

interface Group {
  others: Piece | null; // alternatives before this one
  before: Piece; // this one, up to the last atom
  atom: Piece | null;
}

const bit = (i: number): Bits => (i < 32 ? [1 << i, 0] : [0, 1 << (i - 32)]);
const or = (a: Bits, b: Bits): Bits => [a[0] | b[0], a[1] | b[1]];
const has = (a: Bits, i: number): boolean => ((i < 32 ? a[0] >>> i : a[1] >>> (i - 32)) & 1) === 1;
const NO: Bits = [0, 0];
const nothing = (): Piece => ({ first: NO, last: NO, none: true });

const isDigit = (c: number): boolean => c >= 48 && c <= 57;
const isLetter = (c: number): boolean => (c | 32) >= 97 && (c | 32) <= 122;
const isWord = (c: number): boolean => isLetter(c) || isDigit(c) || c === 95;
const isBlank = (c: number): boolean => c === 32 || (c >= 9 && c <= 13);

export class Pattern {
  private first: Bits = NO;
  private last: Bits = NO;
  private always = false;
  private readonly on = [new Int32Array(258), new Int32Array(258)] as const;
  private readonly after = [new Int32Array(8 * 256), new Int32Array(8 * 256)] as const;

  private readonly follow: Bits[] = [];
  private readonly groups: Group[] = [{ others: null, before: nothing(), atom: null }];
  private readonly bytes: Uint8Array;
  private at = 0;

  /** Throws an Error with a sentence. */
  constructor(text: string) {
    this.bytes = new TextEncoder().encode(text);
    while (this.at < this.bytes.length) this.next();
    if (this.groups.length > 1) this.refuse("a ) is missing");
    this.endAlternative();
    const all = this.groups[0]!.others!;
    this.first = all.first;
    this.last = all.last;
    this.always = all.none;
    for (let b = 0; b < 8; b++)
      for (let set = 1; set < 256; set++) {
        const rest = b * 256 + (set & (set - 1));
        const f = this.follow[b * 8 + 31 - Math.clz32(set & -set)] ?? NO;
        for (const k of [0, 1] as const) this.after[k][b * 256 + set] = this.after[k][rest]! | f[k];
      }
  }

  test(text: string): boolean {
    if (this.always) return true;
    if (/[^\0-\x7f]/.test(text)) {
      const bytes = new TextEncoder().encode(text);
      return this.find(bytes.length, (i) => bytes[i]!);
    }
    return this.find(text.length, (i) => text.charCodeAt(i));
  }

  // BEGIN and END take no byte, so that one may follow another: until they lead nowhere new.
  private find(n: number, sign: (i: number) => number): boolean {
    const [on0, on1] = this.on;
    const [after0, after1] = this.after;
    let low = 0;
    let high = 0;
    for (let i = -1; i <= n; ) {
      const c = i < 0 ? BEGIN : i < n ? sign(i) : END;
      let [a, b] = this.first;
      for (let k = 0, l = low, h = high; l || h; k++) {
        const at = k * 256 + (l & 255);
        a |= after0[at]!;
        b |= after1[at]!;
        l = (l >>> 8) | (h << 24);
        h >>>= 8;
      }
      a &= on0[c]!;
      b &= on1[c]!;
      if (c >= BEGIN) {
        a |= low;
        b |= high;
      }
      if (c < BEGIN || (a === low && b === high)) i++;
      low = a;
      high = b;
      if ((low & this.last[0]) | (high & this.last[1])) return true;
    }
    return false;
  }

  /* --- pieces --- */

  private refuse(why: string): never {
    throw new Error(`at ${this.at}: ${why}`);
  }

  private joined(a: Piece, b: Piece): Piece {
    for (let i = 0; i < this.follow.length; i++) if (has(a.last, i)) this.follow[i] = or(this.follow[i]!, b.first);
    return { first: a.none ? or(a.first, b.first) : a.first, last: b.none ? or(b.last, a.last) : b.last, none: a.none && b.none };
  }

  private get group(): Group {
    return this.groups[this.groups.length - 1]!;
  }

  private flush(): void {
    const g = this.group;
    if (g.atom) g.before = this.joined(g.before, g.atom);
    g.atom = null;
  }

  private add(x: Piece): void {
    this.flush();
    this.group.atom = x;
  }

  private endAlternative(): void {
    this.flush();
    const g = this.group;
    const [a, b] = [g.others, g.before];
    g.others = a ? { first: or(a.first, b.first), last: or(a.last, b.last), none: a.none || b.none } : b;
    g.before = nothing();
  }

  private place(takes: (c: number) => boolean, signs = 256): Piece {
    const i = this.follow.length;
    if (i === PLACES) this.refuse("too long: 64 characters and classes at most");
    this.follow.push(NO);
    const mine = bit(i);
    for (let c = 0; c < signs; c++)
      if (takes(c)) {
        this.on[0][c] = this.on[0][c]! | mine[0];
        this.on[1][c] = this.on[1][c]! | mine[1];
      }
    return { first: mine, last: mine, none: false };
  }

  /* --- characters --- */

  private kind(c: number): ((x: number) => boolean) | null {
    const is = { d: isDigit, w: isWord, s: isBlank }[String.fromCharCode(c | 32)];
    if (!is || !isLetter(c)) return null;
    return c & 32 ? is : (x) => !is(x);
  }

  /** After a backslash: a kind, or one character. */
  private escaped(): { kind: (x: number) => boolean } | { byte: number } {
    if (this.at === this.bytes.length) this.refuse("it ends with a backslash");
    const c = this.bytes[this.at++]!;
    const kind = this.kind(c);
    if (kind) return { kind };
    if (c === 110 || c === 116) return { byte: c === 110 ? 10 : 9 };
    if (isWord(c) || c >= 128) this.refuse("of letters only \\d \\w \\s \\D \\W \\S \\n \\t may follow a backslash");
    return { byte: c };
  }

  private same(byte: number): (c: number) => boolean {
    return (c) => c === byte || (isLetter(byte) && c === (byte ^ 32));
  }

  private class(): void {
    const b = this.bytes;
    const tests: ((c: number) => boolean)[] = [];
    const negated = b[this.at] === 94;
    if (negated) this.at++;
    for (let any = false; ; any = true) {
      if (this.at === b.length) this.refuse("a ] is missing");
      let from = b[this.at++]!;
      if (from === 93 && any) break;
      if (from === 92) {
        const e = this.escaped();
        if ("kind" in e) {
          tests.push(e.kind);
          continue;
        }
        from = e.byte;
      }
      if (from >= 128) this.refuse("in [ ] there may be ASCII only");
      if (this.at + 1 < b.length && b[this.at] === 45 && b[this.at + 1] !== 93) {
        this.at++;
        tests.push(this.range(from));
      } else tests.push(this.same(from));
    }
    this.add(this.place((c) => tests.some((t) => t(c)) !== negated));
  }

  private range(from: number): (c: number) => boolean {
    let to = this.bytes[this.at++]!;
    if (to === 92) {
      const e = this.escaped();
      to = "byte" in e ? e.byte : -1;
    }
    if (to < from || to >= 128) this.refuse("a range in [ ] goes the wrong way");
    const inside = (c: number): boolean => c >= from && c <= to;
    return (c) => inside(c) || (isLetter(c) && inside(c ^ 32));
  }

  /** Beyond ASCII all bytes of the character, so that what follows repeats the whole. */
  private literal(byte: number): void {
    if (byte < 128) return this.add(this.place(this.same(byte)));
    let all = nothing();
    this.at--;
    do {
      const b = this.bytes[this.at++]!;
      all = this.joined(all, this.place((c) => c === b));
    } while (this.at < this.bytes.length && (this.bytes[this.at]! & 0xc0) === 0x80);
    this.add(all);
  }

  /* --- structure --- */

  private repeat(how: string): void {
    const x = this.group.atom;
    if (!x) return this.refuse("nothing stands before *, + or ?");
    if (how !== "?") this.joined(x, x);
    if (how !== "+") x.none = true;
    if (this.bytes[this.at] === 63) this.at++; // x+? finds what x+ finds
  }

  private open(): void {
    if (this.bytes[this.at] === 63) {
      if (this.bytes[this.at + 1] !== 58) this.refuse("of (?...) only (?:...) is known");
      this.at += 2;
    }
    if (this.groups.length === DEPTH) this.refuse("too many parentheses within each other");
    this.groups.push({ others: null, before: nothing(), atom: null });
  }

  private close(): void {
    if (this.groups.length === 1) this.refuse("a ) has no (");
    this.endAlternative();
    this.add(this.groups.pop()!.others!);
  }

  private next(): void {
    const c = this.bytes[this.at++]!;
    const s = String.fromCharCode(c);
    switch (s) {
      case "*":
      case "+":
      case "?": return this.repeat(s);
      case "|": return this.endAlternative();
      case "(": return this.open();
      case ")": return this.close();
      case "[": return this.class();
      case ".": return this.add(this.place(() => true));
      case "^":
      case "$": return this.add(this.place((x) => x === (s === "^" ? BEGIN : END), 258));
      case "{": return this.refuse("{ } is not known; \\{ is the character");
      case "\\": {
        const e = this.escaped();
        return "kind" in e ? this.add(this.place(e.kind)) : this.literal(e.byte);
      }
      default: return this.literal(c);
    }
  }
}
