// A button with a small sheet below it; Escape and a click elsewhere close it.
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";

export function Popover({ label, title, children, right }: {
  label: ComponentChildren; title: string; children: (close: () => void) => ComponentChildren; right?: boolean;
}) {
  const open = useSignal(false);
  const box = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    if (!open.value) return undefined;
    const away = (e: Event): void => {
      if (!box.current?.contains(e.target as Node)) open.value = false;
    };
    const key = (e: KeyboardEvent): void => {
      if (e.key !== "Escape") return;
      e.stopPropagation();
      open.value = false;
      button.current?.focus();
    };
    document.addEventListener("pointerdown", away, true);
    document.addEventListener("keydown", key, true);
    return () => {
      document.removeEventListener("pointerdown", away, true);
      document.removeEventListener("keydown", key, true);
    };
  }, [open.value]);
  const close = (): void => {
    if (box.current?.contains(document.activeElement)) button.current?.focus();
    open.value = false;
  };
  // Who tabs on is done with it.
  const left = (e: FocusEvent): void => {
    if (e.relatedTarget instanceof Node && !box.current?.contains(e.relatedTarget)) open.value = false;
  };
  return (
    <div class="popover" ref={box} onFocusOut={left}>
      <button
        ref={button} type="button" class="button" title={title} aria-expanded={open.value}
        onClick={() => (open.value = !open.peek())}
      >
        {label}
      </button>
      {open.value && <div class={`popover-sheet ${right ? "right" : ""}`} role="group" aria-label={title}>{children(close)}</div>}
    </div>
  );
}
