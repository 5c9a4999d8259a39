// The rows as a table: what the canvas shows, for keyboards and screen readers, and the hidden ones.
import { useSignal } from "@preact/signals";
import { count, plural } from "../../model/format";
import { Layouts } from "./layouts";
import type { Trace } from "./trace";

const PAGE = 200;

export function RowList({ trace }: { trace: Trace }) {
  const shown = useSignal(PAGE);
  const planes = trace.tracks.value?.planes ?? [];
  const all = planes.flatMap((plane) => plane.lines.map((line) => ({ plane, line })));
  const pins = new Set(trace.pins.value);
  const hidden = trace.hidden.value;
  return (
    <div class="hits-list">
      <div class="dock-line">
        <b>{plural(all.length, "row")}</b>
        {hidden.size > 0 && <span>{count(hidden.size)} hidden</span>}
        <Layouts trace={trace} />
        <span class="push">Choose one to go to its first event in view; <kbd>.</kbd> and <kbd>,</kbd> walk from there</span>
      </div>
      <table class="grid">
        <thead>
          <tr><th scope="col">Row</th><th scope="col">Events</th><th scope="col">Pinned</th><th scope="col">Shown</th><th scope="col" class="where">Kind</th></tr>
        </thead>
        <tbody>
          {all.slice(0, shown.value).map(({ plane, line }) => {
            const name = `${plane.name} › ${line.name || "(no name)"}`;
            return (
              <tr key={line.line} aria-selected={trace.event.mark.value?.line === line.line}>
                <td class="name"><div>
                  {line.events
                    ? <button type="button" class="link" title={name} onClick={() => void trace.chooseOn(line.line)}>{name}</button>
                    : name}
                </div></td>
                <td class="number">
                  {line.events
                    ? <button type="button" class="link" title={`List the events of ${name}`} aria-label={`${count(line.events)}: list the events of ${name}`} onClick={() => trace.listEvents(line.line)}>{count(line.events)}</button>
                    : 0}
                </td>
                <td class="number"><input type="checkbox" aria-label={`${name} pinned`} checked={pins.has(line.line)} onChange={() => trace.togglePin(line.line)} /></td>
                <td class="number">
                  <input
                    type="checkbox" aria-label={`${name} shown`} checked={!hidden.has(line.line)}
                    onChange={() => (hidden.has(line.line) ? trace.showLine(line.line) : trace.hideLine(line.line))}
                  />
                </td>
                <td class="where">{line.derived ? `derived: ${line.how ?? ""}` : plane.kind}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
      {all.length > shown.value && (
        <p class="none">
          {count(shown.value)} of {count(all.length)} are listed.{" "}
          <button type="button" class="button" onClick={() => (shown.value += PAGE)}>List more</button>
        </p>
      )}
    </div>
  );
}
