// Files of one's own: dropped anywhere, or chosen; how far they are; and on their pages, until when
// they are there.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { Api, asProblem, type Problem } from "../api/client";
import type { Run } from "../api/types";
import { bytes, date, hour, percent, plural } from "../model/format";
import { go, here } from "../model/location";
import { Icon } from "../widgets/icon";
import { Popover } from "../widgets/popover";
import { ProblemPanel } from "../widgets/problem";
import { currentRun } from "./rail";
import { forget, going, isUpload, kept, prolong, remove, takeFiles, type Going, type Kept } from "./uploads";

/** The browser's own dialog; of the window, not of the page that is seen. */
export function chooseFile(): void {
  document.querySelector<HTMLInputElement>("#file-to-open")?.click();
}

export function OpenFile() {
  return (
    <button
      type="button" class="button open-file" onClick={chooseFile}
      title="Upload a profile from this machine: <host>.xplane.pb, .xplane.pb.gz or .xplane.riegeli. It is kept for a while, and only who gets its address sees it"
    >
      <Icon name="upload" /> Open a file
    </button>
  );
}

const carriesFiles = (e: DragEvent): boolean => e.dataTransfer?.types.includes("Files") ?? false;

/** The whole window takes files. */
function useDrop(): boolean {
  const over = useSignal(false);
  useEffect(() => {
    let deep = 0; // entered elements
    const enter = (e: DragEvent): void => {
      if (carriesFiles(e)) over.value = ++deep > 0;
    };
    const leave = (e: DragEvent): void => {
      if (carriesFiles(e)) over.value = (deep = Math.max(0, deep - 1)) > 0;
    };
    const move = (e: DragEvent): void => {
      if (carriesFiles(e)) e.preventDefault(); // else the browser opens the file itself
    };
    const drop = (e: DragEvent): void => {
      if (!carriesFiles(e)) return;
      e.preventDefault();
      over.value = (deep = 0) > 0;
      void takeFiles([...(e.dataTransfer?.files ?? [])]);
    };
    const all = { dragenter: enter, dragleave: leave, dragover: move, drop };
    for (const [name, fn] of Object.entries(all)) window.addEventListener(name, fn as EventListener);
    return () => {
      for (const [name, fn] of Object.entries(all)) window.removeEventListener(name, fn as EventListener);
    };
  }, []);
  return over.value;
}

function GoingLine({ g }: { g: Going }) {
  if (g.problem)
    return (
      <li>
        <p class="row"><b class="cut" title={g.name}>{g.name}</b> <button type="button" class="tool push" aria-label={`Close the message about ${g.name}`} title="Close" onClick={g.end}><Icon name="close" /></button></p>
        <ProblemPanel problem={g.problem} small {...(g.problem.status === 422 || g.problem.status === 413 ? {} : { retry: g.again })} />
      </li>
    );
  return (
    <li>
      <p class="row">
        <span class="cut" title={g.name}>Uploading <b>{g.name}</b></span>
        <button type="button" class="button push" aria-label={`Cancel the upload of ${g.name}`} onClick={g.end}>Cancel</button>
      </p>
      <progress max={g.bytes || 1} value={g.received} aria-label={`Upload of ${g.name}`} />
      <p class="ago">{bytes(g.received)} of {bytes(g.bytes)}, {percent(g.received, g.bytes) || "0 %"}</p>
    </li>
  );
}

export function Uploads() {
  const over = useDrop();
  return (
    <>
      <input
        id="file-to-open" type="file" class="unseen" tabIndex={-1} aria-hidden="true" aria-label="A profile from this machine" accept=".pb,.gz,.riegeli"
        onChange={(e) => {
          void takeFiles([...(e.currentTarget.files ?? [])]);
          e.currentTarget.value = ""; // the same file may be chosen again
        }}
      />
      {over && (
        <div class="drop-here" role="status">
          <p><Icon name="upload" /> <b>Drop it to open it</b></p>
          <p><code>&lt;host&gt;.xplane.pb</code>, <code>.xplane.pb.gz</code> or <code>.xplane.riegeli</code></p>
        </div>
      )}
      {going.value.length > 0 && <ul class="uploads" role="region" aria-label="Uploads">{going.value.map((g) => <GoingLine key={g.id} g={g} />)}</ul>}
    </>
  );
}

/** On every page of an uploaded run. */
export function UploadChip() {
  const run = currentRun();
  const until = useSignal(0);
  const problem = useSignal<Problem | null>(null);
  const { root, page } = here.value;
  useEffect(() => {
    until.value = 0;
    problem.value = null;
    if (!isUpload(run)) return;
    let live = true;
    new Api(root).json<Run>("run", { run }).then(
      (r) => {
        if (!live || !r.expires_ms) return;
        until.value = r.expires_ms;
        prolong(run, r.expires_ms);
      },
      (e: unknown) => {
        if (asProblem(e).status === 404) forget(run);
      },
    );
    return () => void (live = false);
  }, [root, run, page]);
  if (!isUpload(run) || !until.value) return null;
  const mine = kept.value.find((k) => k.run === run);
  const drop = (): void => {
    remove(root, run).then(() => go(root), (e: unknown) => (problem.value = asProblem(e)));
  };
  return (
    <Popover right title={`An uploaded file: it is here until ${hour(until.value)} if nobody looks at it`} label={<><Icon name="upload" /> <span class="word">Temporary, until {hour(until.value)}</span></>}>
      {() => (
        <div class="upload-about">
          <p>{mine ? <><b>{mine.name}</b>, {bytes(mine.bytes)}.</> : "An uploaded file."} The server keeps it until {hour(until.value)}, longer when it is looked at, and removes it when it ends.</p>
          <p>No list shows it. Who has this address and may see the project can open it, and who gets a share link.</p>
          <p class="row"><button type="button" class="button" onClick={drop}><Icon name="close" /> Remove it now</button></p>
          {problem.value && <p role="alert" class="none">{problem.value.message}</p>}
        </div>
      )}
    </Popover>
  );
}

function KeptLine({ k }: { k: Kept }) {
  const problem = useSignal("");
  return (
    <li>
      <a href={`${k.root}overview_page?run=${k.run}`}>{k.name}</a>
      <span class="ago">{bytes(k.bytes)}, <span title={date(k.expires_ms).iso}>until {hour(k.expires_ms)}</span></span>
      <a href={`${k.root}trace?run=${k.run}`} aria-label={`Timeline of ${k.name}`}><Icon name="timeline" /> Timeline</a>
      <button type="button" class="tool" aria-label={`Remove ${k.name}`} title="Remove it now" onClick={() => { remove(k.root, k.run).catch((e: unknown) => (problem.value = asProblem(e).message)); }}><Icon name="close" /></button>
      {problem.value && <span role="alert">{problem.value}</span>}
    </li>
  );
}

/** Above the list of runs: those that this browser brought and that should still be there. */
export function KeptUploads({ root }: { root: string }) {
  const list = kept.value.filter((k) => k.root === root && k.expires_ms > Date.now());
  if (list.length === 0) return null;
  return (
    <section class="kept-uploads" aria-label="Uploaded files">
      <h2>{plural(list.length, "uploaded file")} <span class="ago">temporary; only this browser lists {list.length === 1 ? "it" : "them"}</span></h2>
      <ul>{list.map((k) => <KeptLine key={k.run} k={k} />)}</ul>
    </section>
  );
}
