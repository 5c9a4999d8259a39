// What the server tells by itself. Where it does not, or where something on the way holds its
// words back, it is asked every now and then instead. Only while the page is in sight: over HTTP/1.1 a
// browser has six connections for all of its pages.

const PATIENCE = 5000; // ms for the first word

export function watch(url: string, told: Record<string, (data: string) => void>, ask: () => void, every: number): () => void {
  let source: EventSource | null = null;
  let timer: ReturnType<typeof setTimeout> | undefined;

  const close = (): void => {
    clearTimeout(timer);
    source?.close();
    source = null;
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
    const s = new EventSource(url);
    source = s;
    timer = setTimeout(poll, PATIENCE);
    for (const [name, fn] of Object.entries(told))
      s.addEventListener(name, (e) => {
        clearTimeout(timer);
        fn((e as MessageEvent<string>).data);
      });
    s.addEventListener("error", () => {
      if (s.readyState !== EventSource.CLOSED || source !== s) return; // else the browser tries again
      clearTimeout(timer);
      poll();
    });
  };

  document.addEventListener("visibilitychange", open);
  open();
  return () => {
    document.removeEventListener("visibilitychange", open);
    close();
  };
}
