// The end of all links of a run: asks once more before it does so.
import { useSignal } from "@preact/signals";

export function RevokeAll({ revoke }: { revoke: () => void }) {
  const sure = useSignal(false);
  const click = (): void => {
    if (sure.peek()) revoke();
    sure.value = !sure.peek();
  };
  return (
    <button type="button" class="button push" onClick={click} onBlur={() => (sure.value = false)}>
      {sure.value ? "Really revoke all?" : "Revoke all"}
    </button>
  );
}
