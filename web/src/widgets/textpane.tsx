// Text of any length: only the lines in sight are in the page.
import { useSignal } from "@preact/signals";
import { useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { px } from "../layout/unit";
import { count } from "../model/format";
import { pieces, referred } from "../model/graph";
import { here } from "../model/location";
import { formatTool, parseTool } from "../model/toolurl";
import { Copy } from "./copy";
import { Icon } from "./icon";
import { save } from "./save";

const lineHeight = (): number => px(18);
const TALL = 28;

/** Names of ops lead to them, on the page one is on. */
function Line({ text }: { text: string }) {
  if (!text.includes("%")) return <>{text}</>;
  const { root, page, search } = here.value;
  const s = parseTool(search);
  return (
    <>
      {pieces(text).map((p, i) => {
        const name = i % 2 ? referred(p) : "";
        return name ? <a key={i} href={`${root}${page}${formatTool({ ...s, op: name, args: { ...s.args, node_name: "", expand: "" } })}`}>{p}</a> : p;
      })}
    </>
  );
}

/** `mark` is a name whose line is shown first: the chosen op's. */
export function TextPane({ text, title, mark }: { text: string; title: string; mark: string }) {
  const box = useRef<HTMLDivElement>(null);
  const lines = useMemo(() => text.split("\n"), [text]);
  const longest = useMemo(() => lines.reduce((a, l) => Math.max(a, l.length), 0), [lines]);
  const find = useSignal("");
  const top = useSignal(0);
  const at = useSignal(0);
  const needle = (find.value || "").toLowerCase();
  const hits = useMemo(() => (needle.length > 1 ? lines.flatMap((l, i) => (l.toLowerCase().includes(needle) ? [i] : [])) : []), [lines, needle]);
  const defined = useMemo(() => (mark ? lines.findIndex((l) => new RegExp(`(^|\\s)%?${mark.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}\\s*=`).test(l)) : -1), [lines, mark]);
  const see = (line: number): void => {
    if (box.current && line >= 0) box.current.scrollTop = Math.max(0, (line - TALL / 3) * lineHeight());
  };
  useLayoutEffect(() => see(defined), [defined]);
  const jump = (step: number): void => {
    if (hits.length === 0) return;
    at.value = at.peek() < 0 && step < 0 ? hits.length - 1 : (at.peek() + step + hits.length) % hits.length;
    see(hits[at.value]!);
  };
  const from = Math.max(0, Math.floor(top.value / lineHeight()) - 20);
  const to = Math.min(lines.length, from + TALL + 50);
  const current = hits[at.value];
  return (
    <section class="table-block" aria-label={title}>
      <div class="table-head">
        <h2>{title}</h2>
        <output class="table-count">{count(lines.length)} lines</output>
        <search class="search table-search">
          <Icon name="search" />
          <input
            type="text" spellcheck={false} placeholder="Find in the text" aria-label="Find in the text" value={find.value}
            onInput={(e) => { find.value = e.currentTarget.value; at.value = -1; }} onKeyDown={(e) => e.key === "Enter" && jump(e.shiftKey ? -1 : 1)}
          />
        </search>
        {needle.length > 1 && <output class="table-count">{hits.length ? `${count(Math.max(0, at.value) + 1)} of ${count(hits.length)}` : "not found"}</output>}
        <div class="table-tools">
          <Copy label="Copy" title="Copy the text" text={() => text} />
          <button type="button" class="button" onClick={() => save(`${title}.txt`, "text/plain", text)}><Icon name="download" /> Text</button>
        </div>
      </div>
      <div
        ref={box} class="text-pane" tabIndex={0} role="region" aria-label={`${title}, lines`} style={{ height: `${Math.min(TALL, lines.length + 1) * lineHeight() + 10}px` }}
        onScroll={(e) => (top.value = e.currentTarget.scrollTop)}
      >
        <div class="text-lines" style={{ height: `${lines.length * lineHeight()}px`, minWidth: `${Math.min(longest, 4000) + 8}ch` }}>
          <pre style={{ transform: `translateY(${from * lineHeight()}px)` }}>
            {lines.slice(from, to).map((l, k) => {
              const i = from + k;
              return <span key={i} class={i === defined ? "mark" : i === current ? "hit" : ""}><i>{i + 1}</i><Line text={l.length > 4000 ? `${l.slice(0, 4000)}…` : l} />{"\n"}</span>;
            })}
          </pre>
        </div>
      </div>
    </section>
  );
}
