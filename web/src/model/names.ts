// What is known about a name of an event, once for all windows that mention it.
import { inkOf } from "../layout/bars";
import { categorize, colourOf, headOf, type Category, type Palette } from "./colour";
import { nameMatches, type Query } from "./query";

export interface Name {
  readonly text: string;
  readonly label: string; // what fits a rectangle: without the HLO text behind it
  readonly category: Category;
  colour: string;
  ink: number; // the colour as a pixel
  width?: number; // of the label in pixels, once it was measured
  lit: boolean; // matches the search, or there is none, and its kind of work is on
}

export type Kind = "device" | "host" | "other";

/** The server cuts names at 120 bytes: what follows might match. */
function isCut(text: string): boolean {
  return text.length >= 40 && new TextEncoder().encode(text).length >= 117;
}

export class Names {
  private readonly byKind: Record<Kind, Map<string, Name>> = { device: new Map(), host: new Map(), other: new Map() };
  private palette: Palette;
  private query: Query | null = null;
  private off: ReadonlySet<Category> = new Set();

  constructor(palette: Palette) {
    this.palette = palette;
  }

  get(text: string, kind: Kind): Name {
    const map = this.byKind[kind];
    let name = map.get(text);
    if (!name) {
      const category = categorize(text, kind);
      const colour = colourOf(text, category, this.palette);
      name = {
        text, label: headOf(text), category, colour, ink: inkOf(colour),
        lit: this.isLit(text, category),
      };
      map.set(text, name);
    }
    return name;
  }

  private isLit(text: string, category: Category): boolean {
    if (this.off.has(category)) return false;
    return !this.query || nameMatches(this.query, text) || isCut(text);
  }

  private each(fn: (n: Name) => void): void {
    for (const map of Object.values(this.byKind)) map.forEach(fn);
  }

  setPalette(palette: Palette): void {
    this.palette = palette;
    this.each((n) => {
      n.colour = colourOf(n.text, n.category, palette);
      n.ink = inkOf(n.colour);
    });
  }

  setQuery(query: Query | null): void {
    this.query = query;
    this.each((n) => (n.lit = this.isLit(n.text, n.category)));
  }

  /** Kinds of work that stand back. */
  setOff(off: ReadonlySet<Category>): void {
    this.off = off;
    this.each((n) => (n.lit = this.isLit(n.text, n.category)));
  }
}
