// What the server tells by itself. Where it does not, or where something on the way holds its
// words back, it is asked every now and then instead. Only while the page is in sight, and one stream
// for all who listen to the same: over HTTP/1.1 a browser has six connections for all of its pages.

const PATIENCE = 5000; // ms for the first word
const NAMES = ["runs", "captures", "progress", "problem"];

interface Stream {
  source: EventSource;
  last: Map<string, string>; // what was said last, for who comes later
  users: number;
}

const streams = new Map<string, Stream>();

function join(url: string): Stream {
  let s = streams.get(url);
  if (!s || s.source.readyState === EventSource.CLOSED) {
    const fresh: Stream = { source: new EventSource(url), last: new Map(), users: 0 };
    for (const name of NAMES) fresh.source.addEventListener(name, (e) => fresh.last.set(name, (e as MessageEvent<string>).data));
    streams.set(url, (s = fresh));
  }
  s.users++;
  return s;
}

function leave(url: string, s: Stream): void {
  if (--s.users > 0) return;
  s.source.close();
  if (streams.get(url) === s) streams.delete(url);
}

export function watch(url: string, told: Record<string, (data: string) => void>, ask: () => void, every: number): () => void {
  let end: (() => void) | null = null;
  let timer: ReturnType<typeof setTimeout> | undefined;

  const close = (): void => {
    clearTimeout(timer);
    end?.();
    end = null;
  };
  const poll = (): void => {
    timer = setTimeout(() => {
      ask();
      poll();
    }, every);
  };
  const open = (): void => {
    close();
    if (document.visibilityState !== "visible") return;
    const s = join(url);
    const ears = new AbortController();
    end = () => (ears.abort(), leave(url, s));
    timer = setTimeout(poll, PATIENCE);
    const hear = (fn: (data: string) => void, data: string): void => {
      clearTimeout(timer);
      fn(data);
    };
    for (const [name, fn] of Object.entries(told)) {
      s.source.addEventListener(name, (e) => hear(fn, (e as MessageEvent<string>).data), { signal: ears.signal });
      const said = s.last.get(name);
      if (said !== undefined) queueMicrotask(() => ears.signal.aborted || hear(fn, said));
    }
    s.source.addEventListener("error", () => {
      if (s.source.readyState !== EventSource.CLOSED) return; // else the browser tries again
      clearTimeout(timer);
      poll();
    }, { signal: ears.signal });
  };

  document.addEventListener("visibilitychange", open);
  open();
  return () => {
    document.removeEventListener("visibilitychange", open);
    close();
  };
}
