// The button that shares what is seen, its dialog, and the list of a run's links.
import { signal, useSignal } from "@preact/signals";
import type { ComponentType } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { Api, asProblem, type Problem } from "../api/client";
import { listLinks, makeLink, revokeLink, type Audience, type KeptLink, type Links, type MadeLink } from "../api/links";
import { date, hour } from "../model/format";
import { here } from "../model/location";
import { toolOf } from "../model/tools";
import { Copy } from "../widgets/copy";
import { Icon } from "../widgets/icon";
import { RevokeAll } from "../widgets/revoke";
import { currentRun } from "./rail";
import { isUpload, kept } from "./uploads";

const MINUTES: [number, string][] = [[60, "1 hour"], [1440, "1 day"], [10080, "7 days"], [43200, "30 days"], [129600, "90 days"]];

const told: Record<Audience, string> = { members: "members of the project", domain: "a mail domain", anyone: "anyone who has it" };

// The page and run whose dialog is open: a page that arrives late brings a bar of its own, and what was
// opened in the one before stays open. It ends with its page, which no event of the dialog tells.
const shared = signal("");

export function ShareButton() {
  const run = currentRun();
  const view = run && `${here.value.page} ${run}`;
  useEffect(() => {
    if (shared.peek() !== view) shared.value = "";
  }, [view]);
  if (!run) return null;
  return (
    <>
      <button type="button" class="tool" title="Share this view" aria-label="Share this view" onClick={() => (shared.value = view)}>
        <Icon name="share" />
      </button>
      {shared.value === view && <Share run={run} close={() => (shared.value = "")} />}
    </>
  );
}

function Share({ run, close }: { run: string; close: () => void }) {
  const box = useRef<HTMLDialogElement>(null);
  const links = useSignal<Links | undefined>(undefined);
  const problem = useSignal<Problem | undefined>(undefined);
  const api = new Api(here.value.root);
  const read = async (): Promise<void> => {
    try {
      links.value = await listLinks(api, run);
    } catch (e) {
      problem.value = asProblem(e);
    }
  };
  const attempt = async (what: () => Promise<unknown>): Promise<void> => {
    problem.value = undefined;
    try {
      await what();
      await read();
    } catch (e) {
      problem.value = asProblem(e);
    }
  };
  useLayoutEffect(() => box.current?.showModal(), []);
  useEffect(() => void read(), []);
  return (
    <dialog ref={box} class="help share-dialog" aria-label="Share" onClose={close} onClick={(e) => e.target === box.current && box.current?.close()}>
      <div class="help-head">
        <h2>Share this view</h2>
        <button type="button" class="tool" aria-label="Close" onClick={() => box.current?.close()}><Icon name="close" /></button>
      </div>
      <p class="row">
        <span>The address holds the whole view: whoever may see the project can open it.</span>
        <Copy text={() => window.location.href} label="Copy address" title="Copy address of this view" />
      </p>
      <QrCode text={() => window.location.href} />
      {isUpload(run) && <p class="none">An uploaded file is temporary: a link to it is good as long as somebody looks at it every now and then, {until(run)}and ends with it.</p>}
      {links.value && <Form run={run} links={links.value} attempt={attempt} api={api} />}
      {problem.value && <p class="none" role="alert">{problem.value.message}</p>}
      {links.value && <List run={run} links={links.value} attempt={attempt} api={api} />}
    </dialog>
  );
}

/** What this browser knows of how long an upload is kept. */
function until(run: string): string {
  const ms = kept.peek().find((k) => k.run === run)?.expires_ms;
  return ms ? `otherwise until ${hour(ms)}, ` : "";
}

/** A link for others opens this run alone: they could not read the base. */
function withoutBase(search: string): string {
  const rest = search.replace(/^\?/, "").split("&").filter((x) => x !== "" && !/^base(=|$)/.test(x)).join("&");
  return rest && `?${rest}`;
}

interface Part {
  run: string;
  links: Links;
  api: Api;
  attempt: (what: () => Promise<unknown>) => Promise<void>;
}

function Form({ run, links, api, attempt }: Part) {
  const audience = useSignal<Audience>("members");
  const domain = useSignal("");
  const minutes = useSignal(Math.min(10080, links.max_minutes));
  const whole = useSignal(false);
  const made = useSignal<MadeLink | undefined>(undefined);
  const { page, search } = here.value;
  const tool = toolOf(page);
  const may = (a: Audience): boolean => a === "members" || links[a];
  const make = (e: Event): void => {
    e.preventDefault();
    void attempt(async () => {
      made.value = await makeLink(api, {
        run, view: `${page}${audience.value === "members" ? search : withoutBase(search)}`, audience: audience.value, minutes: minutes.value,
        ...(tool && !whole.value ? { tool: tool.id } : {}),
        ...(audience.value === "domain" ? { domain: domain.value.trim() } : {}),
      });
    });
  };
  return (
    <form class="share-form" onSubmit={make}>
      <label>For
        <select value={audience.value} onChange={(e) => (audience.value = e.currentTarget.value as Audience)}>
          {(["members", "domain", "anyone"] as const).filter(may).map((a) => <option key={a} value={a}>{told[a]}</option>)}
        </select>
      </label>
      {audience.value === "domain" && (
        <label>Domain
          <input required value={domain.value} placeholder="example.com" onInput={(e) => (domain.value = e.currentTarget.value)} />
        </label>
      )}
      <label>Good for
        <select value={minutes.value} onChange={(e) => (minutes.value = Number(e.currentTarget.value))}>
          {MINUTES.filter(([m]) => m <= links.max_minutes).map(([m, name]) => <option key={m} value={m}>{name}</option>)}
        </select>
      </label>
      {tool && (
        <label>Shows
          <select value={whole.value ? "run" : "page"} onChange={(e) => (whole.value = e.currentTarget.value === "run")}>
            <option value="page">{`only ${tool.label}`}</option>
            <option value="run">all pages of the run</option>
          </select>
        </label>
      )}
      <button type="submit" class="button">Make a link</button>
      {made.value && <Made link={made.value} />}
    </form>
  );
}

function Made({ link }: { link: MadeLink }) {
  const url = new URL(here.value.root + link.url, window.location.href).href;
  return (
    <>
      <p class="row share-made" role="status">
        <input readonly aria-label="The link" value={url} onFocus={(e) => e.currentTarget.select()} />
        <Copy text={() => url} label="Copy link" title="Copy link: it is shown only now" />
      </p>
      <QrCode key={url} text={() => url} />
    </>
  );
}

/** For a telephone's camera. Its script comes when it is opened. */
function QrCode({ text }: { text: () => string }) {
  const shown = useSignal("");
  const Picture = useSignal<ComponentType<{ text: string }> | null>(null);
  const open = (e: { currentTarget: HTMLDetailsElement }): void => {
    shown.value = e.currentTarget.open ? text() : "";
    if (shown.value && !Picture.peek()) void import("../widgets/qr").then((m) => (Picture.value = m.default), () => (shown.value = ""));
  };
  return (
    <details class="share-code" onToggle={open}>
      <summary>QR code</summary>
      {shown.value && Picture.value && <Picture.value text={shown.value} />}
    </details>
  );
}

function state(link: KeptLink): string {
  return link.revoked ? "revoked" : link.expired ? "expired" : `until ${date(link.expires_ms).text}`;
}

function List({ run, links, api, attempt }: Part) {
  if (links.links.length === 0) return null;
  const sorted = [...links.links].sort((a, b) => b.issued_ms - a.issued_ms);
  return (
    <section aria-label="Links of this run">
      <h3>Links of this run</h3>
      <ul class="share-list">
        {sorted.map((l) => (
          <li key={l.id} class="row">
            <span>
              {l.tool ? toolOf(l.tool)?.label ?? l.tool : "All pages"} for {l.audience === "domain" ? l.domain : told[l.audience]}
              <span class="ago" title={date(l.expires_ms).iso}> {state(l)}, by {l.by}</span>
            </span>
            {l.may_revoke && !l.revoked && !l.expired && (
              <button type="button" class="button push" onClick={() => void attempt(() => revokeLink(api, run, l.id))}>Revoke</button>
            )}
          </li>
        ))}
      </ul>
      {links.more && <p class="none">There are more links than are listed.</p>}
      {links.domain && <p class="row"><RevokeAll revoke={() => void attempt(() => revokeLink(api, run))} /></p>}
    </section>
  );
}
