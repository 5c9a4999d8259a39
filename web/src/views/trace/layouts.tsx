// Arrangements of rows that were kept under a name, in this browser.
import { useSignal } from "@preact/signals";
import { plural } from "../../model/format";
import { LAYOUTS_MAX, parseLayouts, type Layout } from "../../model/layouts";
import { keptList } from "../../shell/kept";
import { Icon } from "../../widgets/icon";
import { Popover } from "../../widgets/popover";
import type { Trace } from "./trace";

const { list: layouts, change } = keptList("xprofd.layouts", parseLayouts);

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
    void trace.layout(called).then((made) => {
      if (!made) return;
      change((now) => [...now.filter((l) => l.name !== called), made].slice(-LAYOUTS_MAX));
      trace.say(`Kept as ${called}`);
      close();
    });
  };
  /** The focus goes on to the next one, else to the name: the sheet stays open. */
  const remove = (l: Layout, button: HTMLElement): void => {
    const item = button.closest("li")!;
    const next = (item.nextElementSibling ?? item.previousElementSibling)?.querySelector<HTMLElement>(".push");
    (next ?? item.closest(".layouts")!.querySelector<HTMLElement>("form input"))?.focus();
    change((now) => now.filter((x) => x.name !== l.name));
  };
  return (
    <div class="layouts">
      {list.length === 0 && <p class="none">Pin, hide, fold and flatten rows, and keep that under a name: it fits other profiles whose rows are called the same.</p>}
      <ul>
        {list.map((l) => (
          <li key={l.name} class="row">
            <button type="button" class="link" title={`${plural(l.pins.length, "pinned row")}, ${l.hide.length} hidden, ${l.flat.length} flattened, ${plural(l.folded.length, "folded group")}`} onClick={() => (void trace.arrange(l), close())}>{l.name}</button>
            <button type="button" class="tool push" title="Remove" aria-label={`Remove layout ${l.name}`} onClick={(e) => remove(l, e.currentTarget)}><Icon name="close" /></button>
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
