// Arrangements of rows that were kept under a name, in this browser.
import { signal, useSignal } from "@preact/signals";
import { plural } from "../../model/format";
import { LAYOUTS_MAX, layoutOf, parseLayouts, type Layout } from "../../model/layouts";
import { Icon } from "../../widgets/icon";
import { Popover } from "../../widgets/popover";
import type { Trace } from "./trace";

const KEY = "xprofd.layouts";

function stored(): Layout[] {
  try {
    return parseLayouts(localStorage.getItem(KEY));
  } catch {
    return []; // storage may be forbidden
  }
}

const layouts = signal<readonly Layout[]>(stored());

function keep(list: readonly Layout[]): void {
  layouts.value = list;
  try {
    localStorage.setItem(KEY, JSON.stringify(list));
  } catch {
    // for as long as the page lives
  }
}

export function Layouts({ trace }: { trace: Trace }) {
  return (
    <Popover title="Arrangements of rows: pinned, hidden, flattened, folded" label={<><Icon name="layers" /> Layouts{layouts.value.length > 0 && <span class="badge">{layouts.value.length}</span>}</>}>
      {(close) => <Sheet trace={trace} close={close} />}
    </Popover>
  );
}

function Sheet({ trace, close }: { trace: Trace; close: () => void }) {
  const name = useSignal("");
  const list = layouts.value;
  const save = (e: Event): void => {
    e.preventDefault();
    const called = name.peek().trim();
    if (!called) return;
    const made = layoutOf(called, trace.tracks.peek()?.planes ?? [], trace.arrangement());
    keep([...list.filter((l) => l.name !== called), made].slice(-LAYOUTS_MAX));
    trace.say(`Kept as ${called}`);
    close();
  };
  return (
    <div class="layouts">
      {list.length === 0 && <p class="none">Pin, hide, fold and flatten rows, and keep that under a name: it fits other profiles whose rows are called the same.</p>}
      <ul>
        {list.map((l) => (
          <li key={l.name} class="row">
            <button type="button" class="link" title={`${plural(l.pins.length, "pinned row")}, ${l.hide.length} hidden, ${l.flat.length} flattened, ${plural(l.folded.length, "folded group")}`} onClick={() => (trace.arrange(l), close())}>{l.name}</button>
            <button type="button" class="tool push" title="Remove" aria-label={`Remove layout ${l.name}`} onClick={() => keep(list.filter((x) => x !== l))}><Icon name="close" /></button>
          </li>
        ))}
      </ul>
      <form class="row" onSubmit={save}>
        <input type="text" aria-label="Name of the layout" placeholder="Name" maxLength={60} value={name.value} onInput={(e) => (name.value = e.currentTarget.value)} />
        <button type="submit" class="button" disabled={!name.value.trim()}>Keep this one</button>
      </form>
    </div>
  );
}
