// State of one timeline: what is loaded, what is in view, what is chosen. Knows no DOM.
import { batch, computed, effect, signal, untracked, type ReadonlySignal } from "@preact/signals";
import { asProblem, isAbort, type Api } from "../../api/client";
import { big, type Int } from "../../api/json";
import type { Hit, Plane, Run } from "../../api/types";
import { layoutRuler } from "../../layout/ruler";
import { foldedByDefault, laneTop, layoutRows, moreHeight, visibleRows, type Row, type Rows } from "../../layout/rows";
import { unit } from "../../layout/unit";
import type { Category } from "../../model/colour";
import { Names } from "../../model/names";
import { parseLasting, parseQuery, type Lasting } from "../../model/query";
import { Slabs, type Slab } from "../../model/slabs";
import { count, plural, timestamp } from "../../model/format";
import { arrangementOf, layoutOf, linesNotIn, type Arrangement, type Layout } from "../../model/layouts";
import { toggled } from "../../model/sets";
import { namePalette, palette, paletteToName } from "../../model/theme";
import {
  emptyOwn, formatOwn, formatRows, usualDock, usualOrder, usualUse, BESIDE_MAX, PINS_MAX, type Area, type Beside, type Curve, type Mark as Bookmark, type Mode,
  type Own, type Tab, type Top, type TraceUrl,
} from "../../model/url";
import {
  clampView, deeper, endOf, fitView, panView, revealView, sameView, shiftRange, shiftView, timeAt, unionOf, wholeView, zoomView,
  type Range, type View,
} from "../../model/view";
import { Curves } from "./curves";
import { AreaSum, sameArea } from "./area";
import { Chosen, type Mark } from "./chosen";
import { Fetcher, type LineFacts } from "./fetcher";
import { firstInView, nearest, type CurvePoint, type Hover } from "./picture";
import { Search } from "./search";
import { TracksLoader } from "./tracks";

const SLAB_BYTES = 48 << 20;
const FINEST = 1.5; // rectangles a CSS pixel: finer than that nobody sees, but it costs as much again

export class Trace {
  readonly loader: TracksLoader;
  readonly fetcher: Fetcher;
  readonly search: Search;
  readonly event: Chosen;
  readonly sum: AreaSum;
  readonly curves: Curves;
  readonly names = new Names(palette.peek());
  readonly slabs = new Slabs(SLAB_BYTES);

  /** null: the whole session, also while that still grows. */
  readonly chosen = signal<View | null>(null);
  readonly size = signal({ width: 0, height: 0, scale: 1 }); // of the rows' part
  readonly scrollTop = signal(0);
  readonly folded = signal<ReadonlySet<number>>(new Set());
  readonly flat = signal<ReadonlySet<number>>(new Set());
  readonly pins = signal<readonly number[]>([]);
  readonly hidden = signal<ReadonlySet<number>>(new Set());
  readonly measured = signal<Range | null>(null);
  readonly marks = signal<readonly Bookmark[]>([]);
  readonly trail = signal<readonly View[]>([]); // ranges that were zoomed into
  readonly off = signal<ReadonlySet<Category>>(new Set()); // kinds of work that stand back
  readonly strip = signal(false); // all devices of the run, below the map
  readonly tips = signal(false); // what the reports know of these times, below the map
  readonly flame = signal(false); // the area as a flame graph
  readonly order = signal(usualOrder); // of the area's table
  readonly among = signal(""); // filter of that table
  readonly listed = signal<number | null>(null); // the line whose events are listed; null: that of the chosen one
  readonly mode = signal<Mode>("pan");
  readonly tab = signal<Tab>("details");
  readonly dock = signal(false);
  /** Other timelines that show the same time, each so much later. */
  readonly beside = signal<readonly Trace[]>([]);
  readonly shift = signal(0n);
  /** Of several timelines the one that keys and the panel are about; the first one knows. */
  readonly used = signal<Trace>(this);
  readonly hover = signal<Hover | null>(null);
  /** The value of a curve under the pointer. */
  readonly point = signal<CurvePoint | null>(null);
  readonly said = signal(""); // short message for eyes and screen readers

  readonly dragging = signal<Area | null>(null); // while the mouse is down
  /** The view of the picture that was begun last: what goes with a picture is drawn no oftener. */
  readonly shown = signal<View>({ t0: 0n, span: 1 });

  /** The durations that the search asks for. */
  readonly lasting: ReadonlySignal<Lasting | null>;

  readonly tracks;
  readonly session: ReadonlySignal<Range>;
  readonly bounds: ReadonlySignal<Range>; // where one can move: all timelines that are shown
  readonly view: ReadonlySignal<View>;
  readonly base: ReadonlySignal<string>; // what the ruler counts from
  readonly rows;
  readonly inSight;
  private stepped = false;

  private wantTop: Top | null = null; // row to scroll to once rows are there
  private wentTo: number | null = null; // so far, when rows were too few to get there
  private wantRow: number | null = null; // likewise: to be in sight
  private before: Rows | null = null; // where rows were
  private revealLater: "place" | "row" | false = false; // the chosen event came before the rows
  private readonly undo: (() => void)[] = [];

  /** lead: the timeline that this one stands beside: the view, what is measured and sought, and the panel are its own. */
  constructor(readonly api: Api, readonly who: { run: string; host: string }, readonly lead: Trace | null = null) {
    if (lead) {
      this.mode = lead.mode;
      this.tab = lead.tab;
      this.dock = lead.dock;
      this.off = lead.off;
    }
    this.loader = new TracksLoader(api, who, () => this.onTracks());
    this.tracks = this.loader.tracks;
    this.search = new Search(api, who);
    this.event = new Chosen(api, who);
    this.sum = new AreaSum(api, who);
    this.curves = new Curves(api, who);
    this.fetcher = new Fetcher(api, who, this.slabs, this.names, (line) => this.lineFacts(line));
    this.session = computed(() => {
      const t = this.tracks.value;
      const t0 = big(t?.begin_ps);
      const t1 = big(t?.end_ps);
      return { t0, t1: t1 > t0 ? t1 : t0 + 1n };
    });
    this.bounds = computed((): Range => lead
      ? shiftRange(lead.bounds.value, this.shift.value)
      : this.beside.value.filter((b) => b.tracks.value).reduce((r, b) => unionOf(r, shiftRange(b.session.value, -b.shift.value)), this.session.value));
    this.view = computed(() => lead
      ? shiftView(lead.view.value, this.shift.value)
      : this.chosen.value ?? wholeView(this.bounds.value));
    this.lasting = computed(() => parseLasting((lead ?? this).search.text.value));
    this.base = computed(() => (this.size.value.width ? layoutRuler(this.shown.value, this.size.value.width).base : ""));
    this.rows = computed(() => layoutRows(
      this.tracks.value?.planes ?? [], this.folded.value, this.flat.value, this.pins.value, this.hidden.value,
      this.curves.rows()));
    this.inSight = computed(() => {
      const { rows, pinned, pinnedHeight } = this.rows.value;
      const top = this.scrollTop.value;
      const below = visibleRows(rows, top + pinnedHeight, this.size.value.height - pinnedHeight);
      return [...below, ...pinned.map((r) => ({ ...r, y: r.y + top }))]; // these are drawn over the others
    });
  }

  /** Set before a discrete step, so that the address, which is the first one's, gets an entry of its own. */
  get step(): boolean {
    return (this.lead ?? this).stepped;
  }

  set step(is: boolean) {
    (this.lead ?? this).stepped = is;
  }

  /** What changes at once is an entry of the address; what changes nothing is none, also not with the movement that follows. */
  private discrete(change: () => void): void {
    this.step = true;
    batch(change);
    this.step = false;
  }

  /** What the address says was applied before. */
  start(): void {
    let was = unit();
    this.undo.push(
      effect(() => this.names.setPalette(palette.value)),
      effect(() => this.names.setOff(this.off.value)),
      effect(() => {
        const { text } = (this.lead ?? this).search;
        this.names.setQuery(text.value.trim() ? parseQuery(text.value) : null);
      }),
      effect(() => {
        if (this.lead) this.search.set(this.lead.search.text.value); // each finds its own hits
      }),
      effect(() => this.ask()),
      effect(() => {
        const now = unit(); // rows are taller, or less so
        if (now !== was) untracked(() => this.scrollBy(this.scrollTop.peek() * (now / was - 1)));
        was = now;
      }),
      effect(() => {
        const loaded = this.tracks.value?.loading === false;
        if (loaded && this.fetcher.version.value > 0) setTimeout(() => void this.loader.derive());
      }),
      effect(() => {
        if (this.loader.problem.value) untracked(() => this.keepWithin()); // nobody waits for it any more
      }),
    );
    if (this.who.host || !this.lead) this.loader.start();
    else void this.firstHost();
  }

  /** An address may name a run only: its first host is meant. */
  private async firstHost(): Promise<void> {
    try {
      const { hosts } = await this.api.json<Run>("run", { run: this.who.run });
      this.who.host = hosts[0]?.host ?? "";
    } catch {
      // the loader says what is wrong
    }
    if (this.lead?.beside.peek().includes(this)) this.loader.start();
  }

  stop(): void {
    for (const fn of this.undo) fn();
    this.loader.stop();
    this.fetcher.stop();
    this.search.stop();
    this.event.stop();
    this.sum.stop();
    this.curves.stop();
    for (const b of this.beside.peek()) b.stop();
    if (!this.lead) namePalette(null);
  }

  // --- the address ---

  apply(url: TraceUrl): void {
    batch(() => {
      this.chosen.value = url.t && { t0: url.t.t0, span: Number(url.t.t1 - url.t.t0) };
      this.search.set(url.q, true);
      this.applyOwn(url, url.t === null);
      this.measured.value = url.measured;
      this.marks.value = url.marks;
      this.setBeside(url.beside);
      this.used.value = this.beside.peek()[(url.use ?? usualUse(url)) - 1] ?? this;
      this.strip.value = url.strip;
      this.tips.value = url.tips;
      this.flame.value = url.flame;
      this.order.value = url.order;
      this.among.value = url.among;
      this.off.value = new Set(url.off);
      this.mode.value = url.drag;
      const dock = url.dock ?? usualDock(url);
      this.dock.value = dock !== "";
      if (dock) this.tab.value = dock;
      namePalette(url.palette);
    });
    this.scrollToWanted();
  }

  /** place: a chosen event also says which time is in view. */
  private applyOwn(o: Own, place: boolean): void {
    batch(() => {
      this.folded.value = new Set(o.folded);
      this.flat.value = new Set(o.flat);
      if (o.sel !== this.event.id.peek()) this.select(o.sel, null, place ? "place" : o.top === null ? "row" : "no");
      if (!sameArea(o.area, this.sum.area.peek())) this.setArea(o.area, false);
      this.loader.setFind(o.find, true);
      this.pins.value = o.pins;
      this.hidden.value = new Set(o.hide);
      this.curves.set(o.curves);
      this.listed.value = o.list;
      this.wantTop = o.top;
      this.wentTo = null;
      if (o.top === null && !o.sel) this.scrollTop.value = 0;
    });
  }

  url(): TraceUrl {
    // An event without a time would say: go there.
    const v = this.chosen.value ?? (this.event.id.value && this.tracks.value?.loading === false ? this.view.value : null);
    return {
      ...this.own(),
      run: this.who.run,
      host: this.who.host,
      t: v && { t0: v.t0, t1: endOf(v) },
      q: this.search.text.value,
      measured: this.measured.value,
      marks: [...this.marks.value],
      off: [...this.off.value],
      beside: this.beside.value.map((b) => b.asBeside()),
      use: this.beside.value.indexOf(this.used.value) + 1,
      strip: this.strip.value,
      tips: this.tips.value,
      flame: this.flame.value && this.sum.area.value !== null,
      order: this.order.value,
      among: this.sum.area.value ? this.among.value : "",
      drag: this.mode.value,
      dock: this.dock.value ? this.tab.value : "",
      palette: paletteToName.value,
    };
  }

  private own(): Own {
    const from = this.scrollTop.value + this.rows.value.pinnedHeight;
    const scrolled = this.scrollTop.value > 0;
    const first = this.inSight.value.find((r) => (r.line ? !r.curve && !r.pinned : r.folded) && r.y >= from);
    const top: Top | null = first ? first.line?.line ?? `p${first.plane.plane}` : null;
    return {
      sel: this.event.id.value,
      area: this.sum.area.value,
      folded: [...this.folded.value],
      flat: [...this.flat.value],
      top: scrolled && !this.onTheWay() ? top : this.wantTop,
      find: this.loader.find.value,
      pins: [...this.pins.value],
      hide: [...this.hidden.value],
      curves: [...this.curves.list.value],
      list: this.listed.value,
    };
  }

  // --- other timelines ---

  asBeside(): Beside {
    return { run: this.who.run === this.lead?.who.run ? "" : this.who.run, host: this.who.host, shift: this.shift.value, own: this.own() };
  }

  /** Those that are there stay as they are. */
  setBeside(list: readonly Beside[]): void {
    const old = [...this.beside.peek()];
    const next = list.map((b) => {
      const run = b.run || this.who.run;
      const at = old.findIndex((t) => t.who.run === run && t.who.host === b.host);
      const found = at >= 0 ? old.splice(at, 1)[0]! : null;
      const trace = found ?? new Trace(this.api, { run, host: b.host }, this);
      trace.shift.value = b.shift;
      if (formatOwn(trace.own()).join() !== formatOwn(b.own).join()) {
        trace.applyOwn(b.own, false);
        trace.scrollToWanted();
      }
      return { trace, fresh: !found };
    });
    if (old.length || next.some((n) => n.fresh)) this.beside.value = next.map((n) => n.trace);
    for (const n of next) if (n.fresh) n.trace.start();
    for (const t of old) t.stop();
  }

  addBeside(which: Pick<Beside, "run" | "host">): void {
    this.step = true;
    this.setBeside([...this.beside.peek().map((t) => t.asBeside()), { ...which, shift: 0n, own: emptyOwn }].slice(-BESIDE_MAX));
  }

  /** So much later from now on. */
  setShift(by: bigint): void {
    this.lead!.step = true;
    this.shift.value = by;
  }

  /** The chosen events of both begin at one place. */
  align(): void {
    const [a, b] = [this.lead?.event.mark.peek(), this.event.mark.peek()];
    if (a && b) this.setShift(b.begin - a.begin);
  }

  leave(): void {
    const lead = this.lead!;
    lead.step = true;
    lead.setBeside(lead.beside.peek().filter((t) => t !== this).map((t) => t.asBeside()));
  }

  // --- loading ---

  private lineFacts(number: number): LineFacts {
    const row = this.rows.peek().byLine.get(number);
    if (!row?.line) return { kind: "other", settled: false, extent: this.session.peek() };
    const { plane, line } = row;
    // Nothing is asked for outside the session, so that nothing there may seem to be missing.
    const s = this.session.peek();
    const [t0, t1] = [big(line.begin_ps) - 1n, big(line.end_ps) + 1n];
    const extent = { t0: t0 > s.t0 ? t0 : s.t0, t1: t1 < s.t1 ? t1 : s.t1 };
    return { kind: plane.kind, settled: plane.state === "ready", extent };
  }

  private onTracks(): void {
    this.fetcher.refresh();
    if (!this.onTheWay()) this.keepPlace();
    this.keepWithin();
    if (this.revealLater) this.reveal(this.revealLater === "row");
    if (this.pins.peek().length) void this.loader.ensure(this.pins.peek());
    this.scrollToWanted();
  }

  /** An address may name a time where there is nothing: that is known once all timelines are there, or will not be. */
  private keepWithin(): void {
    if (this.lead) return this.lead.keepWithin();
    const v = this.chosen.peek();
    const isHere = (t: Trace): boolean => {
      const problem = t.loader.problem.peek();
      return problem ? problem.status !== 503 : t.tracks.peek()?.loading === false; // 503: it is asked again
    };
    if (v && this.tracks.peek()?.loading === false && this.beside.peek().every(isHere)) this.setView(clampView(v, this.bounds.peek()), false);
  }

  private ask(): void {
    const { width, height, scale } = this.size.value;
    if (width === 0 || !this.tracks.value) return;
    // Rows a little above and below are asked for as well: scrolling finds them there.
    const near = [...this.rows.value.pinned, ...visibleRows(this.rows.value.rows, this.scrollTop.value - height * 0.4, height * 1.8)];
    const lines = near.flatMap((r) => (r.line && !r.curve && r.line.events > 0 ? [r.line.line] : []));
    const pixels = Math.round(width * Math.min(scale, FINEST));
    this.fetcher.want({ view: this.view.value, lines, pixels, session: this.session.value });
    this.curves.want(near.flatMap((r) => (r.curve?.series === 0 ? [{ line: r.line!.line, stat: r.curve.stat }] : [])), this.view.value, pixels, this.session.value);
  }

  slabOf(line: number): Slab | null {
    const v = this.view.peek();
    const { width, scale } = this.size.peek();
    return this.slabs.best(line, v, v.span / Math.max(1, width * Math.min(scale, FINEST)));
  }

  // --- moving ---

  private setView(v: View, step: boolean): void {
    if (this.lead) return this.lead.setView(shiftView(v, -this.shift.peek()), step);
    const next = sameView(v, wholeView(this.bounds.peek())) ? null : v;
    if (next && this.chosen.peek() && sameView(next, this.chosen.peek()!)) return;
    if (step) this.step = true;
    this.chosen.value = next;
  }

  zoom(factor: number, at = 0.5): void {
    this.step = false; // whatever was to be one came to nothing
    this.setView(zoomView(this.view.peek(), factor, at, this.bounds.peek()), false);
  }

  pan(share: number): void {
    this.step = false;
    this.setView(panView(this.view.peek(), share, this.bounds.peek()), false);
  }

  show(v: View): void {
    this.step = false;
    this.setView(clampView(v, this.bounds.peek()), false);
  }

  zoomTo(r: Range): void {
    this.zoomInto(fitView(r, this.bounds.peek(), 0));
  }

  /** Into a range, or back to one; what is inside of it is left. */
  zoomInto(v: View): void {
    if (this.lead) return this.lead.zoomInto(shiftView(v, -this.shift.peek()));
    this.trail.value = deeper(this.trail.peek(), v);
    this.setView(v, true);
  }

  whole(): void {
    if (this.lead) return this.lead.whole();
    this.discrete(() => {
      this.trail.value = [];
      this.chosen.value = null;
    });
  }

  /** The area, else the event, else everything. */
  fit(): void {
    const a = this.sum.area.peek();
    const m = this.event.mark.peek();
    if (this.tab.peek() === "area" && a) this.zoomInto(fitView(a, this.bounds.peek()));
    else if (m) this.zoomInto(fitView({ t0: m.begin, t1: m.end }, this.bounds.peek(), 0.5));
    else if (a) this.zoomInto(fitView(a, this.bounds.peek()));
    else this.whole();
  }

  scrollBy(dy: number): void {
    const more = this.tracks.peek()?.next == null ? 0 : moreHeight();
    const max = Math.max(0, this.rows.peek().height + more - this.size.peek().height);
    this.scrollTop.value = Math.round(Math.min(max, Math.max(0, this.scrollTop.peek() + dy)));
  }

  /** unfold: also when its group is folded, which an address may have asked for. */
  private scrollToLine(line: number, lane: number, unfold = true): void {
    if (unfold) this.unfoldLine(line);
    const row = this.rows.peek().byLine.get(line);
    const { height } = this.size.peek();
    if (!row || height === 0) {
      this.wantRow = line;
      void this.loader.ensure([line]);
      return;
    }
    if (row.pinned) return;
    const y = laneTop(row, lane);
    const top = this.scrollTop.peek();
    if (y < top + this.rows.peek().pinnedHeight || y + row.laneH > top + height) this.scrollBy(y - height / 3 - top);
  }

  /** The room has changed: the chosen event stays in sight when the panel comes up. */
  resize(next: { width: number; height: number; scale: number }): void {
    const was = this.size.peek();
    this.size.value = next;
    this.scrollToWanted();
    const m = this.event.mark.peek();
    const row = m && this.rows.peek().byLine.get(m.line);
    const top = this.scrollTop.peek();
    if (row && was.height > next.height && row.y >= top && row.y < top + was.height) this.scrollToLine(m.line, m.lane, false);
  }

  private unfoldLine(line: number): void {
    const plane = this.tracks.peek()?.planes.find((p) => p.lines.some((l) => l.line === line));
    const heading = plane && this.rows.peek().rows.find((r) => r.plane === plane && !r.line);
    if (heading?.folded) this.toggleFold(plane!.plane, false);
  }

  scrollToWanted(): void {
    if (this.size.peek().height === 0) return;
    const row = this.wantRow;
    this.wantRow = null;
    if (row !== null && this.wantTop === null && this.rows.peek().byLine.has(row)) this.scrollToLine(row, 0, false);
    this.scrollToTop();
  }

  /** More rows have come in between: what was in sight stays there. */
  private keepPlace(): void {
    const was = this.before;
    const now = (this.before = this.rows.peek());
    const top = this.scrollTop.peek();
    if (!was || was === now) return;
    const m = this.event.mark.peek();
    const inSight = (r: Row | undefined): boolean => r !== undefined && r.y >= top && r.y < top + this.size.peek().height;
    if (m && inSight(was.byLine.get(m.line))) return this.scrollToLine(m.line, m.lane, false);
    const first = top > 0 ? was.rows.find((r) => r.line && !r.curve && inSight(r)) : undefined;
    const there = first && now.byLine.get(first.line!.line);
    if (first && there && !there.pinned) this.scrollBy(there.y - first.y);
  }

  /** Rows that come yet make room to scroll on, if nobody scrolled meanwhile. */
  private onTheWay(): boolean {
    return this.wantTop !== null && (this.wentTo === null || this.wentTo === this.scrollTop.value);
  }

  private scrollToTop(): void {
    if (!this.onTheWay()) this.wantTop = null;
    const row = this.rowAt(this.wantTop);
    if (!row) return;
    const there = row.pinned ? this.scrollTop.peek() : row.y - this.rows.peek().pinnedHeight;
    this.scrollBy(there - this.scrollTop.peek());
    this.wentTo = this.scrollTop.peek();
    if (this.wentTo === there) this.wantTop = null;
  }

  private rowAt(top: Top | null): Row | undefined {
    const { rows, byLine } = this.rows.peek();
    return typeof top === "number" ? byLine.get(top) : top === null ? undefined : rows.find((r) => !r.line && `p${r.plane.plane}` === top);
  }

  /** Only rows that are called so. */
  findRows(text: string): void {
    this.scrollTop.value = 0;
    this.loader.setFind(text);
  }

  toggleFold(plane: number, step = true): void {
    if (step) this.step = true;
    this.folded.value = toggled(this.folded.peek(), plane);
    this.scrollBy(0);
  }

  togglePin(line: number): void {
    const was = this.pins.peek();
    if (was.length >= PINS_MAX && !was.includes(line)) return this.say(`${PINS_MAX} rows are pinned: that is the most.`);
    this.step = true;
    this.pins.value = was.includes(line) ? was.filter((l) => l !== line) : [...was, line];
    this.say(was.includes(line) ? "Unpinned" : "Pinned above the others");
    this.scrollBy(0);
  }

  /** A pinned row changes places with the one above. */
  raisePin(line: number): void {
    const pins = [...this.pins.peek()];
    const i = pins.indexOf(line);
    if (i < 1) return;
    [pins[i - 1], pins[i]] = [pins[i]!, pins[i - 1]!];
    this.step = true;
    this.pins.value = pins;
  }

  hideLine(line: number): void {
    this.step = true;
    this.pins.value = this.pins.peek().filter((l) => l !== line);
    this.hidden.value = new Set([...this.hidden.peek(), line]);
    this.say("Hidden: the table of rows (E) shows it again");
    this.scrollBy(0);
  }

  showLine(line: number): void {
    this.step = true;
    this.hidden.value = new Set([...this.hidden.peek()].filter((l) => l !== line));
  }

  /** The first event of a line at or after the left edge, else its first of all. */
  async chooseOn(line: number): Promise<void> {
    try {
      const hit = await this.search.firstOn(line, this.view.peek().t0 - 1n);
      if (hit) this.chooseHit(hit, "rows");
      else this.say("This row has no events.");
    } catch (e) {
      if (!isAbort(e)) this.say(asProblem(e).message);
    }
  }

  showHidden(): void {
    this.step = true;
    this.hidden.value = new Set();
  }

  arrangement(): Arrangement {
    return { pins: [...this.pins.peek()], hide: [...this.hidden.peek()], flat: [...this.flat.peek()], folded: [...this.folded.peek()] };
  }

  /** A layout is about rows by their names: with some of them not here it would lose what is about those. Says why there is none. */
  private async allPlanes(lost: (planes: readonly Plane[]) => number): Promise<readonly Plane[] | null> {
    if (this.loader.find.peek().trim()) return this.say("Only rows of a name are shown: clear Find rows first."), null;
    await this.loader.all();
    const t = this.tracks.peek();
    const missing = t && (t.loading || t.next != null) ? lost(t.planes) : 0;
    if (t && missing === 0) return t.planes;
    this.say(t && !t.loading ? `${plural(missing, "row")} of it ${missing === 1 ? "is" : "are"} not among the first ${count(t.rows ?? 0)}: nothing was changed.` : "The profile is still loading: its rows are not all here.");
    return null;
  }

  /** The rows as they are, for other profiles; null: that was refused, and why was said. */
  async layout(name: string): Promise<Layout | null> {
    const planes = await this.allPlanes((p) => linesNotIn(p, this.arrangement()));
    return planes && layoutOf(name, planes, this.arrangement());
  }

  /** Rows as they were kept under a name. */
  async arrange(l: Layout): Promise<void> {
    const planes = await this.allPlanes((p) => arrangementOf(p, l).absent);
    if (!planes) return;
    const a = arrangementOf(planes, l);
    this.discrete(() => {
      this.pins.value = a.pins.slice(0, PINS_MAX);
      this.hidden.value = new Set(a.hide);
      this.flat.value = new Set(a.flat);
      this.folded.value = new Set(a.folded);
    });
    this.scrollBy(0);
    this.say(a.absent ? `${l.name}: ${plural(a.absent, "row")} of it ${a.absent === 1 ? "is" : "are"} not here` : l.name);
  }

  // --- bookmarks ---

  /** M: at the pointer, else where the chosen event begins, else in the middle. */
  bookmark(share: number | null): void {
    const v = this.view.peek();
    const here = share !== null ? timeAt(v, share, 1) : this.event.mark.peek()?.begin ?? timeAt(v, 0.5, 1);
    const first = this.lead ?? this;
    const at = here - this.shift.peek();
    batch(() => {
      first.setMarks([...first.marks.peek().filter((m) => m.at !== at), { at, note: "" }]);
      first.openDock("marks");
    });
    this.say(`Bookmark at ${timestamp(at)}`);
  }

  setMarks(marks: readonly Bookmark[]): void {
    this.step = true;
    this.marks.value = [...marks].sort((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0)).slice(0, 50);
  }

  goTo(m: Bookmark): void {
    const v = this.view.peek();
    this.setView(clampView({ t0: m.at - BigInt(Math.round(v.span / 2)), span: v.span }, this.bounds.peek()), true);
  }

  // --- measuring ---

  measure(a: bigint, b: bigint): void {
    if (this.lead) return this.lead.measure(a - this.shift.peek(), b - this.shift.peek());
    this.measured.value = a === b ? null : a < b ? { t0: a, t1: b } : { t0: b, t1: a };
  }

  toggleStrip(): void {
    this.step = true;
    this.strip.value = !this.strip.peek();
  }

  toggleTips(): void {
    const first = this.lead ?? this;
    this.step = true;
    first.tips.value = !first.tips.peek();
  }

  toggleCurve(c: Curve): void {
    this.step = true;
    this.curves.toggle(c);
  }

  /** Which values of a line's events can be drawn: chosen in the panel below. */
  offerCurves(line: number): void {
    this.openDock("curves");
    void this.curves.offer(line, this.view.peek());
  }

  toggleFlat(line: number): void {
    this.step = true;
    this.flat.value = toggled(this.flat.peek(), line);
    this.scrollBy(0);
  }

  foldAll(fold: boolean): void {
    const next = new Set<number>();
    for (const { plane } of this.rows.peek().rows.filter((r) => !r.line))
      if (foldedByDefault(plane) !== fold) next.add(plane.plane);
    this.discrete(() => (this.folded.value = next));
    this.scrollBy(0);
  }

  // --- choosing an event ---

  choose(h: Hover): void {
    this.discrete(() => this.select(h.mark.id, h.mark, "no", this.dock.peek() && this.tab.peek() === "events" ? "events" : "details"));
  }

  chooseHit(hit: Hit, tab: Tab = "hits"): void {
    this.discrete(() => this.select(String(hit.id), markOf(hit), "place", tab));
  }

  /** Of the row that is listed: what is in view is what is listed, so that it stays, but for one that is not there any more. */
  chooseListed(hit: Hit): void {
    const m = markOf(hit);
    this.discrete(() => {
      const v = this.view.peek();
      if (m.end < v.t0 || m.begin > endOf(v)) this.setView(clampView({ t0: m.begin - BigInt(Math.round(v.span / 2)), span: v.span }, this.bounds.peek()), false);
      this.select(m.id, m, "row", "events");
    });
  }

  chooseId(id: Int, tab: Tab = "details"): void {
    this.step = true;
    this.select(String(id), null, "place", tab);
  }

  deselect(): void {
    this.discrete(() => this.event.clear());
  }

  /** reveal: its time and row come into view, its row only, or neither. */
  private select(id: string, mark: Mark | null, reveal: "place" | "row" | "no", tab: Tab = "details"): void {
    if (id === "") return this.event.clear();
    batch(() => { // one entry of the address
      this.openDock(tab);
      if (mark && mark.line !== this.listed.peek()) this.listed.value = null;
      void this.event.choose(id, mark).then((there) => {
        if (there && reveal !== "no" && !mark) this.reveal(reveal === "row");
      });
      if (mark && reveal !== "no") this.reveal(reveal === "row");
    });
  }

  private reveal(rowOnly = false): void {
    const m = this.event.mark.peek();
    if (!m) return;
    this.revealLater = !this.tracks.peek() && (rowOnly ? "row" : "place");
    if (this.revealLater) return;
    const width = this.size.peek().width || 1000;
    if (!rowOnly) this.setView(revealView(this.view.peek(), { t0: m.begin, t1: m.end }, this.bounds.peek(), width), false);
    this.scrollToLine(m.line, m.lane, !rowOnly);
  }

  /** `.` and `,` */
  async neighbour(dir: 1 | -1): Promise<void> {
    if (this.event.id.peek() === "") {
      const first = firstInView(this);
      if (first) this.choose(first);
      return;
    }
    const d = this.event.details.peek();
    if (d && (dir > 0 ? d.next : d.previous) === null)
      return this.say(`This is the ${dir > 0 ? "last" : "first"} event of the row.`);
    this.step = true;
    try {
      if (await this.event.step(dir)) this.reveal();
    } catch (e) {
      this.say(asProblem(e).message);
    }
  }

  /** The event at the same time on the next row that has one. */
  otherRow(dir: 1 | -1): void {
    const m = this.event.mark.peek();
    if (!m) return void this.neighbour(1);
    const { pinned, rows: others } = this.rows.peek();
    const rows = [...pinned, ...others];
    const from = rows.findIndex((r) => r.line?.line === m.line);
    for (let i = from + dir; i >= 0 && i < rows.length; i += dir) {
      const found = nearest(this, rows[i]!, m.begin);
      if (!found) continue;
      this.choose(found);
      this.scrollToLine(found.mark.line, found.mark.lane);
      return;
    }
  }

  // --- what is drawn ---

  /** What is measured and marked, in the time of this one. */
  measuredHere(): Range | null {
    const m = (this.lead ?? this).measured.value;
    return m && shiftRange(m, this.shift.value);
  }

  marksHere(): readonly Bookmark[] {
    const by = this.shift.value;
    return this.lead ? this.lead.marks.value.map((m) => ({ ...m, at: m.at + by })) : this.marks.value;
  }

  // --- choosing an area ---

  setArea(a: Area | null, step = true): void {
    const set = (): void => {
      this.sum.set(a);
      if (a) this.openDock("area");
    };
    if (step) this.discrete(set);
    else batch(set);
  }

  /** R: the chosen event's time, on its row. */
  areaFromEvent(): void {
    const m = this.event.mark.peek();
    if (!m) this.say("Choose an event: its time becomes the area.");
    else if (m.end > m.begin) this.setArea({ t0: m.begin, t1: m.end, rows: "" });
    else this.say("This event lasts no time.");
  }

  /** lines: null is all that were recorded. */
  areaOf(x0: number, x1: number, lines: number[] | null): Area {
    const { width } = this.size.peek();
    const v = this.view.peek();
    const [a, b] = [timeAt(v, Math.min(x0, x1), width), timeAt(v, Math.max(x0, x1), width)];
    return { t0: a, t1: b > a ? b : a + 1n, rows: formatRows(lines ?? []) };
  }

  /** The row whose events are listed: the one that was asked for, that of the chosen event, the first in sight. */
  lineToList(): number | null {
    return this.listed.value ?? this.event.mark.value?.line ?? this.inSight.value.find((r) => r.line && !r.curve && r.line.events > 0)?.line?.line ?? null;
  }

  listEvents(line: number | null): void {
    this.discrete(() => {
      this.listed.value = line;
      this.openDock("events");
    });
  }

  showFlame(is: boolean): void {
    this.step = is !== this.flame.peek();
    this.flame.value = is;
  }

  // --- search ---

  async stepHit(dir: 1 | -1): Promise<void> {
    const m = this.event.mark.peek();
    const v = this.view.peek();
    const s = this.session.peek();
    const at = m ? m.begin : dir > 0 ? v.t0 - 1n : endOf(v);
    try {
      const hit = await this.search.step(dir, at, m?.id ?? null, { first: s.t0, last: s.t1 });
      if (hit) this.chooseHit(hit);
      else this.say(this.search.text.peek() ? "Nothing matches." : "Type what to search for: /");
    } catch (e) {
      if (!isAbort(e)) this.say(asProblem(e).message);
    }
  }

  async moreHits(): Promise<void> {
    try {
      await this.search.more();
    } catch (e) {
      if (!isAbort(e)) this.say(asProblem(e).message);
    }
  }

  /** The run of an operand before the chosen event, of a user after it. */
  async goToOp(op: string, dir: 1 | -1): Promise<void> {
    const m = this.event.mark.peek();
    if (!m) return;
    try {
      const hit = await this.search.nearest(m.line, op, m, dir);
      if (this.event.mark.peek() !== m) return; // somebody went on meanwhile
      if (hit) this.chooseHit(hit, "details");
      else this.say(`${op} has no event on this row.`);
    } catch (e) {
      if (!isAbort(e)) this.say(asProblem(e).message);
    }
  }

  // --- the rest ---

  openDock(tab: Tab): void {
    batch(() => {
      this.tab.value = tab;
      this.dock.value = true;
    });
  }

  /** The panel as somebody wants it: null closes it. */
  chooseTab(tab: Tab | null): void {
    this.discrete(() => {
      if (tab) this.openDock(tab);
      else this.dock.value = false;
    });
  }

  setMode(mode: Mode): void {
    if (mode === this.mode.peek()) return;
    this.step = true;
    this.mode.value = mode;
  }

  say(text: string): void {
    this.said.value = "";
    this.said.value = text;
  }

  /** Esc: one level back. False when there was none. */
  back(): boolean {
    if (this.dragging.peek()) this.dragging.value = null;
    else if (this.mode.peek() !== "pan") this.setMode("pan");
    else if (this.event.id.peek()) this.deselect();
    else if (this.measuredHere()) this.measure(0n, 0n);
    else if (this.sum.area.peek()) this.setArea(null);
    else if (this.search.text.peek()) this.search.set("");
    else if (this.dock.peek()) this.chooseTab(null);
    else return false;
    return true;
  }
}

/** "/device:TPU:0 › XLA Ops" */
export function nameOfRow(r: Row): string {
  return `${r.plane.name || `plane ${r.plane.plane}`} › ${r.line?.name || "(no name)"}`;
}

/** Rows in sight that have events, and the one that is listed wherever it is. */
export function rowsToList(t: Trace): Row[] {
  const seen = t.inSight.value.filter((r) => r.line && !r.curve && r.line.events > 0);
  const listed = t.rows.value.byLine.get(t.lineToList() ?? -1);
  return !listed?.line || seen.some((r) => r.line === listed.line) ? seen : [listed, ...seen];
}

function markOf(hit: Hit): Mark {
  const begin = big(hit.begin_ps);
  return { id: String(hit.id), line: hit.line, lane: hit.lane, begin, end: begin + big(hit.duration_ps) };
}
