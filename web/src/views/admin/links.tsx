// The share links of all runs, for an admin of the project: which of them work, and the end of any, or of a run's.
import { useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { Api, asProblem, type Problem } from "../../api/client";
import { listAllLinks, revokeLink, type KeptLink } from "../../api/links";
import { date, plural } from "../../model/format";
import { toolOf } from "../../model/tools";
import { ProblemPanel } from "../../widgets/problem";
import { RevokeAll } from "../../widgets/revoke";

const works = (l: KeptLink): boolean => !l.revoked && !l.expired;
const state = (l: KeptLink): string => (l.revoked ? "revoked" : l.expired ? "expired" : `until ${date(l.expires_ms).text}`);
const audience = (l: KeptLink): string =>
  l.audience === "domain" ? l.domain ?? "" : l.audience === "anyone" ? "anyone who has it" : "members of the project";

function byRun(links: KeptLink[]): [string, KeptLink[]][] {
  const runs = new Map<string, KeptLink[]>();
  for (const l of links) runs.set(l.run, [...(runs.get(l.run) ?? []), l]);
  return [...runs].map(([run, of]) => [run, of.sort((a, b) => b.issued_ms - a.issued_ms)]);
}

export function SharedLinks({ root }: { root: string }) {
  const api = useMemo(() => new Api(root), [root]);
  const links = useSignal<KeptLink[] | null>(null);
  const next = useSignal<string | null>(null);
  const problem = useSignal<Problem | null>(null);
  const all = useSignal(false);
  const read = async (after?: string): Promise<void> => {
    try {
      const got = await listAllLinks(api, after);
      links.value = after ? [...(links.peek() ?? []), ...got.links] : got.links;
      next.value = got.next;
      problem.value = null;
    } catch (e) {
      problem.value = asProblem(e);
    }
  };
  const revoke = async (run: string, id?: string): Promise<void> => {
    try {
      await revokeLink(api, run, id);
      links.value = (links.peek() ?? []).map((l) => (l.run === run && (!id || l.id === id) ? { ...l, revoked: true } : l));
      problem.value = null;
    } catch (e) {
      problem.value = asProblem(e);
    }
  };
  useEffect(() => void read(), [api]);
  const p = problem.value;
  const shown = (links.value ?? []).filter((l) => all.value || works(l));
  return (
    <section aria-label="Share links">
      {p && (p.status === 403 || p.status === 404 ? <p class="none">{p.message}</p> : <ProblemPanel problem={p} retry={() => void read()} />)}
      {links.value && (
        <>
          <p>
            <label><input type="checkbox" checked={all.value} onChange={(e) => (all.value = e.currentTarget.checked)} /> also those that have ended</label>
          </p>
          {shown.length === 0 && <p class="none">No link {all.value ? "was made" : "works"}{next.value ? " among those listed so far" : ""}.</p>}
          {byRun(shown).map(([run, of]) => <OfRun key={run} root={root} run={run} links={of} revoke={revoke} />)}
          {next.value && <p><button type="button" class="button" onClick={() => void read(next.peek() ?? undefined)}>List more</button></p>}
        </>
      )}
    </section>
  );
}

function OfRun({ root, run, links, revoke }: { root: string; run: string; links: KeptLink[]; revoke: (run: string, id?: string) => Promise<void> }) {
  return (
    <section aria-label={`Run ${run}`}>
      <h3>
        <a href={`${root}run?run=${encodeURIComponent(run)}`}>{run}</a> <span class="ago">{plural(links.length, "link")}</span>{" "}
        {links.some(works) && <RevokeAll revoke={() => void revoke(run)} />}
      </h3>
      <div class="sheet"><table class="runs" aria-label={`Links of ${run}`}>
        <thead><tr>{["Shows", "For", "Made by", "Made", "State", ""].map((h) => <th key={h} scope="col">{h || <span class="unseen">End it</span>}</th>)}</tr></thead>
        <tbody>
          {links.map((l) => (
            <tr key={l.id}>
              <th scope="row">{l.tool ? toolOf(l.tool)?.label ?? l.tool : "all pages"}</th>
              <td>{audience(l)}</td>
              <td>{l.by}</td>
              <td title={date(l.issued_ms).iso}>{date(l.issued_ms).text}</td>
              <td title={date(l.expires_ms).iso}>{state(l)}</td>
              <td>{works(l) && <button type="button" class="button" onClick={() => void revoke(run, l.id)}>Revoke</button>}</td>
            </tr>
          ))}
        </tbody>
      </table></div>
    </section>
  );
}
