// What a step is. A profile may have no marks, or not the ones that are meant: then it is a module, or an
// event of host threads, that is chosen here for all pages of the run.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { Api } from "../../api/client";
import { asReport, type Report } from "../../api/report";
import type { ToolUrl } from "../../model/toolurl";
import { Icon } from "../../widgets/icon";
import { Popover } from "../../widgets/popover";
import { set } from "./state";

const SUGGESTED = 20;

/** Modules of the run, the longest first. */
async function modulesOf(root: string, run: string, signal: AbortSignal): Promise<string[]> {
  const r = asReport(await new Api(root).json<Partial<Report>>("report", { run, tool: "graph_viewer", table: "modules", limit: SUGGESTED }, signal));
  const t = r.tables.find((x) => x.id === "modules");
  const at = t?.columns.findIndex((c) => c.id === "module") ?? -1;
  return t && at >= 0 ? [...new Set(t.rows.map((row) => String(row[at]).replace(/\(\d+\)$/, "")))] : [];
}

function Choice({ s, root, close }: { s: ToolUrl; root: string; close: () => void }) {
  const modules = useSignal<readonly string[]>([]);
  const text = useSignal(s.marker);
  useEffect(() => {
    const abort = new AbortController();
    modulesOf(root, s.run, abort.signal).then((got) => (modules.value = got), () => undefined); // a name can be typed all the same
    return () => abort.abort();
  }, [root, s.run]);
  const take = (marker: string): void => {
    set({ marker: marker.trim(), steps: "" });
    close();
  };
  return (
    <form class="step-marker" onSubmit={(e) => (e.preventDefault(), take(text.value))}>
      <label>A step is each run of the module, or each event on host threads, called
        <input class="field" type="text" spellcheck={false} value={text.value} placeholder="jit_train_step" onInput={(e) => (text.value = e.currentTarget.value)} />
      </label>
      {modules.value.length > 0 && (
        <ul aria-label="Modules of this run">
          {modules.value.map((m) => <li key={m}><button type="button" class="link" onClick={() => take(m)}>{m}</button></li>)}
        </ul>
      )}
      <p class="row">
        <button type="submit" class="button">Use it</button>
        {s.marker && <button type="button" class="button" onClick={() => take("")}>As the profile says</button>}
      </p>
    </form>
  );
}

export function StepMarker({ s, root }: { s: ToolUrl; root: string }) {
  const title = s.marker ? `Steps are those of ${s.marker}, on all pages of the run` : "What a step is";
  return (
    <Popover title={title} label={<><Icon name="measure" /> <span class="cut">{s.marker ? <>step: <b>{s.marker}</b></> : "Steps"}</span></>}>
      {(close) => <Choice s={s} root={root} close={close} />}
    </Popover>
  );
}
