// What stands below a table that is listed in parts: how much of it is there, and a button for more.
import { useLayoutEffect, useRef } from "preact/hooks";
import { count } from "../../model/format";

/** Right behind the table: the focus goes to the first row that came, as the button may be gone. */
export function MoreHits({ listed, total, more, ask }: { listed: number; total: number; more: boolean; ask: () => void }) {
  const box = useRef<HTMLParagraphElement>(null);
  const from = useRef<number | null>(null);
  useLayoutEffect(() => { // before anybody else looks where the focus went
    const first = from.current;
    from.current = null;
    const at = document.activeElement;
    if (first === null || listed <= first || (at && at !== document.body && !box.current?.contains(at))) return;
    box.current?.previousElementSibling?.querySelectorAll("tbody tr")[first]?.querySelector<HTMLElement>("button")?.focus();
  }, [listed]);
  return (
    <p class="none" ref={box} hidden={!more}>
      {more && (
        <>
          {count(listed)} of {count(total)} are listed.{" "}
          <button type="button" class="button" onClick={() => { from.current = listed; ask(); }}>List more</button>
        </>
      )}
    </p>
  );
}
