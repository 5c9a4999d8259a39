import { useEffect, useRef } from "preact/hooks";
import { categories, colourOf } from "../../model/colour";
import { palette } from "../../model/theme";
import { Icon } from "../../widgets/icon";
import { help } from "./keys";

export function Help({ close }: { close: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  const colours = palette.value;
  return (
    <dialog ref={dialog} class="help" aria-label="Keys" onClose={close} onClick={(e) => e.target === dialog.current && dialog.current?.close()}>
      <div class="help-head">
        <h2>Keys and mouse</h2>
        <button type="button" class="tool" aria-label="Close" onClick={() => dialog.current?.close()}><Icon name="close" /></button>
      </div>
      <div class="help-columns">
        {help.map((column, i) => (
          <dl key={i}>
            {column.map((k) => (
              <div key={k.keys}>
                <dt>{k.keys.split(" ").map((key) => (key === "+" ? " + " : <kbd key={key}>{key}</kbd>))}</dt>
                <dd>{k.what}</dd>
              </div>
            ))}
          </dl>
        ))}
      </div>
      <h3>Colours</h3>
      <p class="legend">
        {categories.map((c) => (
          <span key={c.id}>
            {[1, 2, 3].map((n) => <i key={n} class="swatch" style={{ background: colourOf(`${c.id}${"abc"[n]}`, c.id, colours) }} />)}
            {c.label}
          </span>
        ))}
      </p>
      <p class="none">The hue says what kind of work it is; each operation has its own place in the hue's range, always the same. Lighter, hatched rectangles stand for several events.</p>
    </dialog>
  );
}
