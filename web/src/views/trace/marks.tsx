// Bookmarks: times with notes. They are in the address, so that a link carries them.
import { plural, timestamp } from "../../model/format";
import { Icon } from "../../widgets/icon";
import type { Trace } from "./trace";

export function Marks({ trace }: { trace: Trace }) {
  const marks = trace.marks.value;
  if (marks.length === 0)
    return <p class="none">Press <kbd>M</kbd> over the timeline to mark a time. Marks and their notes are part of the address.</p>;
  return (
    <div class="hits-list">
      <div class="dock-line"><b>{plural(marks.length, "bookmark")}</b><span class="push">They are part of the address</span></div>
      <table class="grid bookmarks">
        <thead><tr><th scope="col">#</th><th scope="col">Time</th><th scope="col" class="where">Note</th><th scope="col" /></tr></thead>
        <tbody>
          {marks.map((m, i) => (
            <tr key={String(m.at)}>
              <td class="number">{i + 1}</td>
              <td class="number"><button type="button" class="link" title="Show" onClick={() => trace.goTo(m)}>{timestamp(m.at)}</button></td>
              <td class="where">
                <input
                  type="text" aria-label={`Note of bookmark ${i + 1}`} placeholder="note" maxLength={200} value={m.note}
                  onChange={(e) => trace.setMarks(marks.map((x) => (x === m ? { ...x, note: e.currentTarget.value } : x)))}
                />
              </td>
              <td>
                <button
                  type="button" class="tool" title="Remove" aria-label={`Remove bookmark ${i + 1}`}
                  onClick={() => trace.setMarks(marks.filter((x) => x !== m))}
                >
                  <Icon name="close" />
                </button>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
