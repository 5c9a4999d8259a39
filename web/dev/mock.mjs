// mock.mjs LOGDIR [PORT] - enough of docs/api.md to work on the pages without a built server.
// Reads LOGDIR/plugins/profile/<run>/<host>.xplane.pb[.gz] whole, with the plainest code that does.
import { createServer } from "node:http";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import { extname, join } from "node:path";

const [logdir, port = "8791"] = process.argv.slice(2);
const base = join(logdir, "plugins/profile");
const dist = new URL("../dist/", import.meta.url).pathname;
const CSP = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; " +
  "connect-src 'self'; worker-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; " +
  "require-trusted-types-for 'script'";

function* fields(buf) {
  let at = 0;
  const varint = () => {
    let v = 0n;
    for (let s = 0n; ; s += 7n) {
      const b = buf[at++];
      v |= BigInt(b & 127) << s;
      if (b < 128) return BigInt.asIntN(64, v);
    }
  };
  while (at < buf.length) {
    const start = at;
    const tag = Number(varint());
    const wire = tag & 7;
    if (wire === 0) yield [tag >> 3, varint(), start];
    else if (wire === 1) { yield [tag >> 3, buf.readDoubleLE(at), start]; at += 8; }
    else if (wire === 2) { const n = Number(varint()); if (n > buf.length - at) throw new Error("cut off"); yield [tag >> 3, buf.subarray(at, at + n), start]; at += n; }
    else throw new Error("wire type");
  }
}
const message = (buf, spec) => {
  const m = {};
  for (const k of Object.values(spec)) if (k.endsWith("[]")) m[k.slice(0, -2)] = [];
  for (const [n, v, at] of fields(buf)) {
    const k = spec[n];
    if (!k) continue;
    if (k.endsWith("[]")) m[k.slice(0, -2)].push(v.length === undefined ? v : Object.assign(v, { at }));
    else m[k] = v;
  }
  return m;
};
const text = (b) => (b ? new TextDecoder().decode(b) : "");
const mapOf = (entries, spec) => new Map(entries.map((e) => {
  const kv = message(e, { 1: "key", 2: "value" });
  return [kv.key ?? 0n, message(kv.value ?? Buffer.alloc(0), spec)];
}));

const parts = new Map();
function load(run, host) {
  const key = `${run}/${host}`;
  if (parts.has(key)) return parts.get(key);
  let file = join(base, run, `${host}.xplane.pb`);
  let raw = existsSync(file) ? readFileSync(file) : gunzipSync(readFileSync(file + ".gz"));
  const planes = [];
  let line = 0, damage = null;
  try {
    for (const [n, v] of fields(raw)) if (n === 1) {
      const p = message(v, { 1: "id", 2: "name", 3: "lines[]", 4: "em[]", 5: "sm[]" });
      const em = mapOf(p.em, { 1: "id", 2: "name", 4: "display", 5: "stats[]" });
      const sm = mapOf(p.sm, { 1: "id", 2: "name" });
      planes.push({ name: text(p.name), em, sm, raw: p.lines });
    }
  } catch { damage = { offset: raw.length, detail: "the file ends inside a message" }; }
  const wall = (ns) => ns > 10n ** 17n;
  const rank = (p) => (p.name.startsWith("/device") ? 0 : p.name === "/host:CPU" ? 1 : 2);
  planes.sort((a, b) => rank(a) - rank(b) || (a.name < b.name ? -1 : 1));
  let origin = null;
  for (const p of planes) for (const l of p.raw) {
    const ts = message(l, { 3: "ts" }).ts ?? 0n;
    if (wall(ts) && (origin === null || ts < origin)) origin = ts;
  }
  let id = 1;
  const events = new Map();
  planes.forEach((p, pi) => {
    p.plane = pi;
    p.lines = p.raw.map((l) => {
      const m = message(l, { 1: "id", 2: "name", 11: "display", 3: "ts", 4: "events[]" });
      const ts = m.ts ?? 0n;
      const at0 = (wall(ts) ? ts - origin : ts) * 1000n;
      const L = { line: line++, plane: pi, id: Number(m.id ?? 0n), name: text(m.display) || text(m.name), lanes: [] };
      L.events = m.events.map((e) => {
        const x = message(e, { 1: "mid", 2: "off", 3: "dur", 4: "stats[]", 5: "occ" });
        const meta = p.em.get(x.mid) ?? {};
        const ev = { id: id++, L, meta, begin: Number(at0 + (x.off ?? 0n)), dur: Number(x.dur ?? 0n), stats: x.stats, name: text(meta.display) || text(meta.name) };
        events.set(ev.id, ev);
        return ev;
      }).sort((a, b) => a.begin - b.begin || b.dur - a.dur);
      const ends = [];
      for (const e of L.events) {
        let k = ends.findIndex((t) => t <= e.begin);
        if (k < 0) k = ends.length;
        ends[k] = e.begin + e.dur;
        e.lane = k;
        (L.lanes[k] ??= []).push(e);
      }
      return L;
    });
  });
  const all = [...events.values()];
  const part = { run, host, planes, events, all, damage, bytes: raw.length,
    begin: all.reduce((a, e) => Math.min(a, e.begin), all.length ? Infinity : 0), end: all.reduce((a, e) => Math.max(a, e.begin + e.dur), 0) };
  parts.set(key, part);
  return part;
}
const kind = (p) => (p.name.startsWith("/device") ? "device" : p.name.startsWith("/host:CPU") ? "host" : "other");

const vi = (v) => { v = BigInt.asUintN(64, BigInt(v)); const b = []; do { b.push(Number(v & 127n) | (v > 127n ? 128 : 0)); v >>= 7n; } while (v); return Buffer.from(b); };
const zz = (n) => (BigInt(n) << 1n) ^ (BigInt(n) >> 63n);
const fi = (n, v) => Buffer.concat([vi((n << 3) | 0), vi(v)]);
const fb = (n, b) => Buffer.concat([vi((n << 3) | 2), vi(b.length), b]);

const rowsOf = (s) => s && new Set(s.split(",").flatMap((p) => { const [a, b = a] = p.split("-").map(Number); return Array.from({ length: b - a + 1 }, (_, i) => a + i); }));

function window(part, q) {
  const t0 = q.has("t0") ? Number(q.get("t0")) : part.begin, t1 = q.has("t1") ? Number(q.get("t1")) : part.end;
  const px = Number(q.get("px") ?? 1500), rows = rowsOf(q.get("rows")), per = (t1 - t0) / px;
  const names = new Map([["", 0]]), msgs = [];
  let events = 0, hidden = 0;
  for (const p of part.planes) for (const L of p.lines) if (!rows || rows.has(L.line)) L.lanes.forEach((lane, k) => {
    const rects = [];
    let n = 0;
    for (const e of lane) {
      if (e.begin + e.dur < t0 || e.begin >= t1) continue;
      n++;
      const last = rects[rects.length - 1];
      if (last && e.dur < per && last.top.dur < per && e.begin + e.dur - last.b < per) {
        last.e = e.begin + e.dur; last.n++; last.busy += e.dur; if (e.dur > last.top.dur) last.top = e;
      } else rects.push({ b: e.begin, e: e.begin + e.dur, n: 1, busy: e.dur, top: e });
    }
    if (!n) return;
    let prev = t0, pid = 0;
    const col = rects.map((r, i) => {
      if (!names.has(r.top.name)) names.set(r.top.name, names.size);
      const c = [i ? BigInt(r.b - prev) : zz(r.b - t0), BigInt(r.e - r.b), names.get(r.top.name), zz(r.top.id - pid), r.n, r.busy];
      prev = r.e; pid = r.top.id;
      return c;
    });
    const pack = (i, f = () => true) => Buffer.concat(col.filter(f).map((c) => vi(c[i])));
    const merged = rects.some((r) => r.n > 1);
    const hid = n - rects.length;
    events += n; hidden += hid;
    msgs.push(fb(5, Buffer.concat([fi(1, L.line), fi(2, k), fi(3, n), fi(4, hid), fb(6, pack(0)), fb(7, pack(1)), fb(8, pack(2)), fb(9, pack(3)),
      ...(merged ? [fb(10, pack(4)), fb(11, pack(5, (c) => c[4] > 1))] : [])])));
  });
  return Buffer.concat([fi(1, t0), fi(2, t1), fi(3, px), ...[...names.keys()].map((n) => fb(4, Buffer.from(n))), ...msgs, fi(6, events), fi(7, hidden), fi(8, 1)]);
}

function details(part, e, p = part.planes[e.L.plane]) {
  const arg = (from) => (s) => {
    const m = message(s, { 1: "mid", 2: "d", 3: "u", 4: "i", 5: "s", 6: "b", 7: "ref" });
    const name = text(p.sm.get(m.mid)?.name);
    if (m.s !== undefined) return { name, value: text(m.s), type: "string", from };
    if (m.ref !== undefined) return { name, value: text(p.sm.get(m.ref)?.name), type: "string", from };
    if (m.b !== undefined) return { name, value: null, type: "bytes", bytes: m.b.length, from };
    if (m.d !== undefined) return { name, value: String(m.d), type: "double", from };
    return { name, value: String(m.u ?? m.i ?? 0n), type: m.u !== undefined ? "uint64" : "int64", from };
  };
  const i = e.L.events.indexOf(e);
  const nested = e.L.events.filter((x) => x.lane === e.lane + 1 && x.begin >= e.begin && x.begin + x.dur <= e.begin + e.dur);
  return { id: e.id, name: text(e.meta.name), display_name: text(e.meta.display), line: e.L.line, line_name: e.L.name, plane: p.plane, plane_name: p.name,
    lane: e.lane, begin_ps: e.begin, duration_ps: e.dur, self_ps: e.dur - nested.reduce((s, x) => s + x.dur, 0), occurrences: null,
    args: [...e.stats.map(arg("event")), ...(e.meta.stats ?? []).map(arg("metadata"))], args_cut: false, flows: [],
    previous: e.L.events[i - 1]?.id ?? null, next: e.L.events[i + 1]?.id ?? null };
}

const api = {
  runs: (q) => {
    const runs = readdirSync(base).filter((r) => !q.get("q") || r.includes(q.get("q"))).map((run) => {
      const hosts = readdirSync(join(base, run)).filter((f) => /\.xplane\.pb(\.gz)?$/.test(f));
      return { run, captured_ms: statSync(join(base, run)).mtimeMs, captured_from: "mtime", hosts: hosts.length,
        bytes: hosts.reduce((s, h) => s + statSync(join(base, run, h)).size, 0), state: hosts.length ? "ready" : "empty", note: hosts.length ? "" : "no *.xplane.pb in it" };
    });
    runs.sort((a, b) => (a.run < b.run ? 1 : -1));
    return { location: base, runs, total: runs.length, total_exact: true, next: null, cut: null, empty: runs.length ? null : { read: base, found: "nothing", expected: `${base}/<run>/<host>.xplane.pb` } };
  },
  run: (q) => ({ run: q.get("run"), captured_ms: statSync(join(base, q.get("run"))).mtimeMs, location: join(base, q.get("run")),
    hosts: readdirSync(join(base, q.get("run"))).filter((f) => f.includes(".xplane.pb")).map((f) => ({ host: f.replace(/\.xplane.*/, ""), bytes: statSync(join(base, q.get("run"), f)).size,
      compressed: f.endsWith(".gz"), modified_ms: 1.7e12, state: "ready", note: "" })) }),
  tracks: (q, part) => ({ run: part.run, host: part.host, begin_ps: part.begin, end_ps: part.end, events: part.all.length, start_wall_ns: null, loading: false,
    bytes_done: part.bytes, bytes_total: part.bytes, planes_done: part.planes.length, planes_total: part.planes.length, partial: !!part.damage, damage: part.damage,
    planes: part.planes.map((p) => ({ plane: p.plane, name: p.name, state: "ready", events: p.lines.reduce((s, l) => s + l.events.length, 0), kind: kind(p),
      lines: p.lines.map((l) => ({ line: l.line, id: l.id, name: l.name, events: l.events.length, lanes: l.lanes.length, begin_ps: l.events[0]?.begin ?? 0, end_ps: l.events.reduce((m, e) => Math.max(m, e.begin + e.dur), 0), derived: false, odd: 0, overflow: 0 })) })) }),
  event: (q, part) => {
    let e = part.events.get(Number(q.get("id")));
    if (e && q.get("step")) e = e.L.events[e.L.events.indexOf(e) + (q.get("step") === "next" ? 1 : -1)];
    if (!e) throw Object.assign(new Error(`no event ${q.get("id")}`), { status: 404 });
    return details(part, e);
  },
  search: (q, part) => {
    const words = q.get("q").toLowerCase().split(/\s+/);
    const found = part.all.filter((e) => words.every((w) => e.name.toLowerCase().includes(w))).sort((a, b) => a.begin - b.begin || a.id - b.id);
    let hits = found;
    const key = (e) => [e.begin, e.id];
    const after = [Number(q.get("after")), Number(q.get("after_id") ?? 0)];
    const less = (a, b) => a[0] < b[0] || (a[0] === b[0] && a[1] < b[1]);
    if (q.has("after")) hits = q.get("dir") === "prev" ? found.filter((e) => less(key(e), after)).reverse() : found.filter((e) => less(after, key(e)));
    const limit = Number(q.get("limit") ?? 50);
    const lines = new Map();
    for (const e of found) lines.set(e.L.line, (lines.get(e.L.line) ?? 0) + 1);
    return { q: q.get("q"), total: found.length, lines: [...lines].map(([line, count]) => ({ line, count })), more: hits.length > limit, loading: false,
      hits: hits.slice(0, limit).map((e) => ({ id: e.id, line: e.L.line, lane: e.lane, name: e.name, begin_ps: e.begin, duration_ps: e.dur })) };
  },
  aggregate: (q, part) => {
    const t0 = Number(q.get("t0")), t1 = Number(q.get("t1")), rows = rowsOf(q.get("rows")), by = new Map();
    let n = 0, total = 0;
    for (const e of part.all) {
      if (e.begin + e.dur <= t0 || e.begin >= t1 || (rows && !rows.has(e.L.line))) continue;
      const k = `${e.L.plane} ${e.name}`, d = Math.min(t1, e.begin + e.dur) - Math.max(t0, e.begin);
      const r = by.get(k) ?? { name: e.name, plane: e.L.plane, d: [], longest: e };
      if (e.dur > r.longest.dur) r.longest = e;
      r.d.push(d); by.set(k, r); n++; total += d;
    }
    const list = [...by.values()].map((r) => { r.d.sort((a, b) => a - b); const s = r.d.reduce((a, b) => a + b, 0), k = r.d.length;
      return { name: r.name, plane: r.plane, count: k, total_ps: s, self_ps: s, min_ps: r.d[0], max_ps: r.d[k - 1], mean_ps: Math.round(s / k), p50_ps: r.d[k >> 1], p99_ps: r.d[Math.floor(k * 0.99)], longest_id: r.longest.id }; })
      .sort((a, b) => b.self_ps - a.self_ps);
    return { t0_ps: t0, t1_ps: t1, events: n, names: by.size, total_ps: total, self_ps: total, rows: list.slice(0, 300), rest: { names: Math.max(0, by.size - 300), count: 0, total_ps: 0, self_ps: 0 }, loading: false };
  },
};

process.on("uncaughtException", (e) => console.error(e));
const types = { ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".html": "text/html; charset=utf-8" };
createServer((req, res) => {
  const url = new URL(req.url, "http://x");
  const m = /^\/p\/([^/]+)\/(.*)$/.exec(url.pathname);
  if (!m) return res.writeHead(302, { location: "/p/local/" }).end();
  const what = /^api\/v1\/(\w+)$/.exec(m[2])?.[1];
  try {
    if (what) {
      const q = url.searchParams;
      const part = ["runs", "run"].includes(what) ? null : load(q.get("run"), q.get("host"));
      const body = what === "window" ? window(part, q) : JSON.stringify(api[what](q, part));
      return res.writeHead(200, { "content-type": what === "window" ? "application/x-protobuf" : "application/json" }).end(body);
    }
    const file = m[2].startsWith("assets/") ? m[2] : "index.html";
    const body = readFileSync(join(dist, file));
    res.writeHead(200, { "content-type": types[extname(file)], "content-security-policy": CSP, "cache-control": file === m[2] ? "immutable" : "no-cache" }).end(body);
  } catch (e) {
    const status = e.status ?? (e.code === "ENOENT" ? 404 : 500);
    res.writeHead(status, { "content-type": "application/problem+json" }).end(JSON.stringify({ type: "about:blank", title: status === 404 ? "Not Found" : "Internal", status, code: status === 404 ? "not_found" : "internal", detail: e.message }));
  }
}).listen(Number(port), "127.0.0.1", function () { console.log(`xprofd: listening on http://127.0.0.1:${this.address().port}/`); });
