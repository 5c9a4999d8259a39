// The rail at the left: runs, compare, captures, admin, the tools of this run. It can be folded to its icons, and is
// so by default beside the timeline, which needs the room.
import { signal } from "@preact/signals";
import { here } from "../model/location";
import { runTitle } from "../model/runname";
import { compareHref, encode, parseTool, toolHref } from "../model/toolurl";
import { TIMELINE, tools, type Tool } from "../model/tools";
import { Icon, type IconName } from "../widgets/icon";
import { drawer } from "./drawer";
import { pinned } from "./pins";
import { toolsOf } from "./runtools";

const KEY = "xprofd.rail";

function stored(): boolean | null {
  try {
    const v = localStorage.getItem(KEY);
    return v === "open" ? true : v === "folded" ? false : null;
  } catch {
    return null; // storage may be forbidden
  }
}

const wanted = signal<boolean | null>(stored());

function toggle(open: boolean): void {
  wanted.value = !open;
  try {
    localStorage.setItem(KEY, open ? "folded" : "open");
  } catch {
    // stays for this page only
  }
}

const NO_RUN = new Set(["", "compare", "captures", "admin"]);

/** The run of the page, if it is about one. */
export function currentRun(): string {
  return NO_RUN.has(here.value.page) ? "" : new URLSearchParams(here.value.search).get("run") ?? "";
}

/** The hosts of the run one comes from are chosen there. */
export function capturesHref(root: string): string {
  const run = here.value.page === "captures" ? new URLSearchParams(here.value.search).get("run") : currentRun();
  return `${root}captures${run ? `?run=${encode(run)}` : ""}`;
}

export function Rail() {
  const { root, page, search } = here.value;
  const open = wanted.value ?? page !== TIMELINE;
  const run = currentRun();
  const state = parseTool(search);
  return (
    <nav class={`rail ${open ? "open" : "folded"} ${drawer.value ? "drawn" : ""}`} aria-label="Pages" onClick={() => (drawer.value = false)}>
      <button
        type="button" class="rail-toggle" aria-expanded={open} title={open ? "Fold the menu" : "Unfold the menu"}
        onClick={(e) => { e.stopPropagation(); toggle(open); }}
      >
        <Icon name="rail" /> <span class="rail-word">Menu</span>
      </button>
      <div class="rail-items">
        <Item href={root} icon="runs" label="Runs" here={page === ""} hint="All runs (G A)" />
        <Item href={compareHref(root, run, search)} icon="compare" label="Compare" here={page === "compare"} hint="Compare two runs (G V)" />
        <Item href={capturesHref(root)} icon="camera" label="Captures" here={page === "captures"} hint="Profile what runs now (G L)" />
        <Item href={`${root}admin`} icon="admin" label="Admin" here={page === "admin"} hint="How this instance does (G D)" />
        <Pinned root={root} run={run} page={page} />
        {run && <RunItems root={root} run={run} page={page} href={(t) => toolHref(root, t.id, state)} />}
      </div>
    </nav>
  );
}

function Pinned({ root, run, page }: { root: string; run: string; page: string }) {
  const list = pinned(root);
  if (list.length === 0) return null;
  const to = page && !NO_RUN.has(page) && page !== TIMELINE ? page : "overview_page"; // the same page of the other run
  return (
    <div class="rail-group" role="group" aria-label="Pinned runs">
      <p class="rail-title"><span class="rail-word">Pinned</span></p>
      {list.map((r) => <Item key={r} href={`${root}${to}?run=${encodeURIComponent(r)}`} icon="pin" label={runTitle(r)} here={r === run} hint="A pinned run" />)}
    </div>
  );
}

function RunItems({ root, run, page, href }: { root: string; run: string; page: string; href: (t: Tool) => string }) {
  const states = toolsOf(root, run).value;
  const groups = [...new Set(tools.map((t) => t.group))];
  return (
    <>
      <p class="rail-run" title={runTitle(run)}><span class="rail-word">{runTitle(run)}</span></p>
      {groups.map((group) => (
        <div key={group} class="rail-group" role="group" aria-label={group || "This run"}>
          {group && <p class="rail-title"><span class="rail-word">{group}</span></p>}
          {tools.filter((t) => t.group === group).map((t) => {
            const s = states?.get(t.id);
            const off = s && !s.available ? s.reason ?? "This run has no data for it" : "";
            return (
              <Item
                key={t.id} href={href(t)} icon={t.icon} label={t.label} here={page === t.id} off={off}
                hint={off || `${t.question} (G ${t.key.toUpperCase()})`}
              />
            );
          })}
        </div>
      ))}
    </>
  );
}

function Item(p: { href: string; icon: IconName; label: string; here: boolean; hint: string; off?: string }) {
  return (
    <a
      class={`rail-item ${p.off ? "off" : ""}`} href={p.href} aria-current={p.here ? "page" : undefined}
      title={`${p.label}\n${p.hint}`} aria-label={p.off ? `${p.label}, no data: ${p.off}` : p.label}
    >
      <Icon name={p.icon} /> <span class="rail-word">{p.label}</span>
    </a>
  );
}
