// Copies text; says that it did.
import { useSignal } from "@preact/signals";
import { Icon } from "./icon";

async function put(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false; // plain http on another host has no clipboard
  }
}

export function Copy({ text, label, title }: { text: () => string; label?: string; title: string }) {
  const done = useSignal<"" | "copied" | "not allowed">("");
  const click = async (): Promise<void> => {
    done.value = (await put(text())) ? "copied" : "not allowed";
    setTimeout(() => (done.value = ""), 1400);
  };
  return (
    <button type="button" class={label ? "button" : "copy"} title={title} aria-label={!label || title.includes(label) ? title : undefined} onClick={() => void click()}>
      <Icon name="copy" /> {done.value || label}
    </button>
  );
}
