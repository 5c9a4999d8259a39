// Which hosts a page is about: all, or those that are ticked.
import { useSignal } from "@preact/signals";
import { count } from "../model/format";
import { Icon } from "./icon";
import { Popover } from "./popover";

const FILTER_FROM = 10;

export function HostPicker({ all, chosen, onChange }: { all: readonly string[]; chosen: readonly string[]; onChange: (hosts: string[]) => void }) {
  const q = useSignal("");
  if (all.length === 0) return null;
  if (all.length === 1) return <span class="host-one" title="The run's only host">{all[0]}</span>;
  const picked = new Set(chosen);
  const label = chosen.length === 0 ? `All ${count(all.length)} hosts` : chosen.length === 1 ? chosen[0]! : `${count(chosen.length)} of ${count(all.length)} hosts`;
  const flip = (h: string): void => {
    const next = new Set(chosen.length === 0 ? [] : chosen);
    if (!next.delete(h)) next.add(h);
    onChange(next.size === all.length ? [] : all.filter((x) => next.has(x)));
  };
  const words = q.value.toLowerCase().split(/\s+/).filter(Boolean);
  const listed = all.filter((h) => words.every((w) => h.toLowerCase().includes(w)));
  return (
    <Popover title="Choose hosts" label={<><Icon name="grid" /> <span class="cut">{label}</span> <Icon name="down" /></>}>
      {() => (
        <>
          {all.length > FILTER_FROM && (
            <input class="field" type="text" placeholder="Find a host" aria-label="Find a host" value={q.value} onInput={(e) => (q.value = e.currentTarget.value)} />
          )}
          <div class="chooser">
            <label><input type="checkbox" checked={chosen.length === 0} onChange={() => onChange([])} /> <span>All hosts</span></label>
            {listed.slice(0, 500).map((h) => (
              <label key={h}><input type="checkbox" checked={picked.has(h)} onChange={() => flip(h)} /> <span>{h}</span></label>
            ))}
            {listed.length > 500 && <p class="ago">{count(listed.length - 500)} more: type to find one</p>}
          </div>
        </>
      )}
    </Popover>
  );
}
