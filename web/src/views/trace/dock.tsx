// The panel below the timeline.
import { useSignal } from "@preact/signals";
import { shortCount } from "../../model/format";
import { Icon } from "../../widgets/icon";
import { CurveList } from "./curvelist";
import { AreaTable } from "./aggregate";
import { Details } from "./details";
import { EventList } from "./eventlist";
import { Hits } from "./hits";
import { Marks } from "./marks";
import { RowList } from "./rowlist";
import type { Tab } from "../../model/url";
import type { Trace } from "./trace";

const SMALLEST = 110;

export function Dock({ trace }: { trace: Trace }) {
  const height = useSignal(290);
  if (!trace.dock.value) return null;
  const total = trace.search.answer.value?.total;
  const tabs: { id: Tab; label: string; note: string }[] = [
    { id: "details", label: "Event", note: "" },
    { id: "area", label: "Area", note: trace.sum.answer.value ? shortCount(trace.sum.answer.value.events) : "" },
    { id: "hits", label: "Hits", note: total === undefined ? "" : shortCount(total) },
    { id: "rows", label: "Rows", note: "" },
    { id: "events", label: "Events", note: "" },
    { id: "marks", label: "Bookmarks", note: trace.marks.value.length ? String(trace.marks.value.length) : "" },
  ];
  if (trace.tab.value === "curves" || trace.curves.list.value.length)
    tabs.push({ id: "curves", label: "Curves", note: trace.curves.list.value.length ? String(trace.curves.list.value.length) : "" });
  const resize = (to: number): void => {
    height.value = Math.min(Math.max(SMALLEST, to), window.innerHeight * 0.7);
  };
  const drag = (e: PointerEvent): void => {
    const el = e.currentTarget as HTMLElement;
    const from = height.peek() + e.clientY;
    el.setPointerCapture(e.pointerId);
    el.onpointermove = (m) => resize(from - m.clientY);
    el.onpointerup = () => (el.onpointermove = null);
  };
  const walk = (e: KeyboardEvent): void => {
    const step = e.key === "ArrowRight" ? 1 : e.key === "ArrowLeft" ? -1 : 0;
    if (!step) return;
    e.preventDefault();
    const to = tabs[(tabs.findIndex((t) => t.id === trace.tab.peek()) + step + tabs.length) % tabs.length]!;
    trace.chooseTab(to.id);
    document.getElementById(`tab-${to.id}`)?.focus();
  };
  return (
    <section class="dock" style={{ height: `${height.value}px` }} aria-label="Details">
      <div
        class="splitter" role="separator" aria-orientation="horizontal" aria-label="Height of the details" tabIndex={0}
        aria-valuenow={Math.round(height.value)} onPointerDown={drag}
        onKeyDown={(e) => {
          if (e.key === "ArrowUp" || e.key === "ArrowDown") resize(height.peek() + (e.key === "ArrowUp" ? 24 : -24));
        }}
      />
      <div class="tabs">
        <div role="tablist" aria-label="Details of" onKeyDown={walk}>
          {tabs.map((t) => (
            <button
              key={t.id} type="button" role="tab" id={`tab-${t.id}`} aria-selected={trace.tab.value === t.id}
              aria-controls="dock-panel" onClick={() => trace.chooseTab(t.id)}
            >
              {t.label}{t.note && <span class="badge">{t.note}</span>}
            </button>
          ))}
        </div>
        <button type="button" class="tool push" title="Hide (Q)" aria-label="Hide" onClick={() => trace.chooseTab(null)}>
          <Icon name="close" />
        </button>
      </div>
      <div class="dock-panel" role="tabpanel" id="dock-panel" aria-labelledby={`tab-${trace.tab.value}`} tabIndex={0}>
        {trace.tab.value === "details" && <Details trace={trace} />}
        {trace.tab.value === "area" && <AreaTable trace={trace} />}
        {trace.tab.value === "hits" && <Hits trace={trace} />}
        {trace.tab.value === "rows" && <RowList trace={trace} />}
        {trace.tab.value === "events" && <EventList trace={trace} />}
        {trace.tab.value === "curves" && <CurveList trace={trace} />}
        {trace.tab.value === "marks" && <Marks trace={trace} />}
      </div>
    </section>
  );
}
