// What is being worked on, in the bar of every page.
import { plural } from "../model/format";
import { Icon } from "../widgets/icon";
import { Popover } from "../widgets/popover";
import { wantNoMore } from "./figures";
import { captureNews, CaptureLines } from "./recording";
import { jobs, progressText, type Job } from "./jobs";

function JobLine({ job }: { job: Job }) {
  const p = job.progress.value;
  const said = progressText(p);
  return (
    <li>
      <p class="row">
        <span><b>{job.label}</b> <span class="cut" title={job.run}>{job.run}</span></span>
        <button type="button" class="button push" onClick={job.cancel}>Cancel</button>
      </p>
      <progress {...(said ? { max: p!.bytes_total, value: p!.bytes_done } : {})} aria-label={`${job.label} ${job.run}`} />
      <p class="ago">{said || "the server is working it out"}</p>
    </li>
  );
}

export function Tray() {
  const n = jobs.value.length;
  const { going, over } = captureNews();
  const busy = n + going.length;
  if (busy + over.length === 0) return null;
  const title = [busy > 0 && `Work in progress: ${plural(busy, "job")}`, over.length > 0 && `${plural(over.length, "capture")} ended`].filter(Boolean).join(", ");
  return (
    <Popover right title={title} label={busy > 0 ? <><span class="spinner" /> {busy}</> : <span class="ended"><Icon name={over.every((c) => c.outcome === "SUCCEEDED") ? "check" : "warn"} /></span>}>
      {() => (
        <>
          <CaptureLines />
          {n > 0 && <ul class="jobs" aria-label="Work in progress">{jobs.value.map((j) => <JobLine key={j.id} job={j} />)}</ul>}
          {n > 1 && <p class="row"><button type="button" class="button push" onClick={() => { wantNoMore(); jobs.peek().forEach((j) => j.cancel()); }}><Icon name="close" /> Cancel all</button></p>}
        </>
      )}
    </Popover>
  );
}
