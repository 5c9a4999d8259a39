// Runs that look as if they were of one capture: each host wrote a session of its own.
import { useSignal } from "@preact/signals";
import type { RunJoin } from "../../api/types";
import { plural } from "../../model/format";
import { runHref, runTitle } from "../../model/runname";
import { Icon } from "../../widgets/icon";

const SHOWN = 3;

export function Joins({ joins, root }: { joins: readonly RunJoin[]; root: string }) {
  const gone = useSignal<readonly string[]>([]);
  const left = joins.filter((j) => !gone.value.includes(j.run));
  if (left.length === 0) return null;
  return (
    <section class="joins" aria-label="Runs that may be one capture">
      {left.slice(0, SHOWN).map((j) => (
        <p key={j.run} class="row">
          <Icon name="layers" />
          <span>
            <b>{runTitle(j.run)}</b>: captured {j.span_ms ? `within ${(j.span_ms / 1000).toFixed(0)} s` : "at the same time"} on {plural(j.hosts, "host")} that differ. If that is one capture, open it as one run.
          </span>
          <a class="button" href={runHref(root, j.run)}>Open joined</a>
          <button type="button" class="tool" aria-label={`${runTitle(j.run)} is not one capture`} title="It is not one capture" onClick={() => (gone.value = [...gone.peek(), j.run])}><Icon name="close" /></button>
        </p>
      ))}
      {left.length > SHOWN && <p class="none">{plural(left.length - SHOWN, "more group")} like {left.length - SHOWN === 1 ? "it" : "them"} below: tick their runs and join them.</p>}
    </section>
  );
}
