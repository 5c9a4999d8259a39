// A server that captures, played: it answers `captures` and `events` of the API and hands all else on to
// the real one. Nothing happens by itself: a test says what comes next.
import { createServer, request } from "node:http";

const body = (req) => new Promise((done) => {
  let text = "";
  req.on("data", (chunk) => (text += chunk)).on("end", () => done(text ? JSON.parse(text) : {}));
});

export class FakeCaptures {
  constructor({ names = ["w-0", "w-1", "w-2"], rate = () => 50e6 } = {}) {
    this.state = {
      enabled: true, reason: null, mode: "pull", location: "logs", continuous: [], captures: [],
      targets: names.map((name, i) => ({ name, address: `10.0.0.${i + 1}:9999`, bytes_per_s: rate(i), busy: false })),
    };
    this.asked = []; // changes: [method, what, query, body]
    this.refuse = null; // the next change is answered with this problem
    this.refused = []; // targets that do not record continuously
    this.ears = new Set();
    this.turn = 0;
  }

  async start(url) {
    this.upstream = new URL(url);
    this.server = createServer((req, res) => void this.handle(req, res).catch((e) => res.destroy(e)));
    await new Promise((done) => this.server.listen(0, "127.0.0.1", done));
    return `http://127.0.0.1:${this.server.address().port}`;
  }

  stop() {
    this.server.closeAllConnections();
    return new Promise((done) => this.server.close(done));
  }

  tell() {
    this.turn++;
    for (const res of this.ears) res.write(`event: captures\ndata: {"version":"${this.turn}"}\n\n`);
  }

  add(more = {}) {
    const now = Date.now();
    const c = {
      id: (this.state.captures.length + 1).toString(16).padStart(16, "0"), kind: "on_demand", run: `2026_11_30_16_10_0${this.state.captures.length}`, phase: "capturing", outcome: null,
      began_ms: now, ends_ms: now + 60_000, ended_ms: null, duration_ms: 60_000, delay_ms: 0, by: "user:ann@example.com", note: "", levels: { host: 2, device: 1, python: 0 }, options: {}, targets: [], ...more,
    };
    c.targets = c.targets.map((t) => ({ target: t, phase: "capturing", outcome: null, grpc_status: null, message: "", hint: "", bytes: null, attempts: 1 }));
    this.state.captures.unshift(c);
    this.tell();
    return c;
  }

  /** outcomes: one a target, {outcome, message, hint, bytes}. */
  finish(c, ...outcomes) {
    c.targets.forEach((t, i) => Object.assign(t, { phase: "done", grpc_status: 0, ...(outcomes[i] ?? outcomes[outcomes.length - 1]) }));
    const good = c.targets.filter((t) => t.outcome === "SUCCEEDED").length;
    Object.assign(c, { phase: "done", ended_ms: Date.now(), outcome: good === c.targets.length ? "SUCCEEDED" : good ? "PARTIAL" : c.targets.some((t) => t.outcome === "CANCELLED") ? "CANCELLED" : "FAILED" });
    this.tell();
  }

  async handle(req, res) {
    const url = new URL(req.url, "http://x");
    const what = /\/p\/local\/api\/v1\/(captures(?:\/\w+)?|events)$/.exec(url.pathname)?.[1];
    const json = (status, doc) => res.writeHead(status, { "content-type": status < 400 ? "application/json" : "application/problem+json", "cache-control": "no-store" }).end(JSON.stringify(doc));
    if (what === "events" && !url.searchParams.has("run")) {
      res.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-store" });
      res.write(`event: runs\ndata: {"version":"1"}\n\nevent: captures\ndata: {"version":"${this.turn}"}\n\n`);
      this.ears.add(res);
      res.on("close", () => this.ears.delete(res));
    } else if (what?.startsWith("captures")) {
      if (req.method === "GET") {
        const id = url.searchParams.get("id");
        const one = this.state.captures.find((c) => c.id === id);
        if (!id || one) json(200, one ?? this.state);
        else json(404, { title: "Not Found", status: 404, code: "not_found", detail: `no capture is called ${id}`, hint: "" });
        return;
      }
      const doc = await body(req);
      this.asked.push([req.method, what, url.search, doc]);
      const no = this.refuse;
      this.refuse = null;
      if (req.headers["x-xprofd"] !== "1") json(403, { title: "Forbidden", status: 403, detail: "the header is missing" });
      else if (no) json(no.status, no);
      else this.change(req.method, what, url.searchParams, doc, json);
    } else {
      const onward = request({ host: this.upstream.hostname, port: this.upstream.port, path: req.url, method: req.method, headers: { ...req.headers, host: this.upstream.host, ...(req.headers.origin ? { origin: this.upstream.origin } : {}) } }, (answer) => {
        res.writeHead(answer.statusCode, answer.headers);
        answer.pipe(res);
      });
      onward.on("error", () => res.destroy());
      res.on("close", () => onward.destroy());
      req.pipe(onward);
    }
  }

  change(method, what, query, doc, json) {
    if (what === "captures/continuous") {
      const failed = doc.targets.filter((t) => this.refused.includes(t)).map((target) => ({ target, outcome: "UNSUPPORTED", message: "Unimplemented", hint: "Its profiler is too old." }));
      const others = this.state.continuous.filter((c) => !doc.targets.includes(c.target));
      const fresh = doc.on ? doc.targets.filter((t) => !this.refused.includes(t)).map((target) => ({ target, since_ms: Date.now() - 3_600_000, state: "running", by: "user:ann@example.com", message: null })) : [];
      this.state.continuous = [...others, ...fresh];
      this.tell();
      json(200, { continuous: this.state.continuous, failed });
    } else if (what === "captures/snapshot") {
      const targets = doc.targets ?? this.state.continuous.map((c) => c.target);
      json(202, this.add({ kind: "snapshot", targets, duration_ms: 0, ends_ms: Date.now(), phase: "collecting" }));
    } else if (method === "POST") {
      const now = Date.now();
      json(202, this.add({ ...doc, run: doc.run ?? `2026_11_30_16_10_0${this.state.captures.length}`, ends_ms: now + doc.delay_ms + doc.duration_ms, began_ms: now }));
    } else {
      const c = this.state.captures.find((x) => x.id === query.get("id"));
      this.finish(c, query.get("drop") ? { outcome: "CANCELLED", message: "", bytes: null } : { outcome: "SUCCEEDED", bytes: 3_000_000 });
      json(202, c);
    }
  }
}
