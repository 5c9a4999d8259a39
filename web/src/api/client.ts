// One request, one answer or one Problem. Nothing here keeps state.
import { apiUrl, type Params } from "./base";
import { parseExact } from "./json";

export class Problem extends Error {
  readonly status: number; // 0: no answer at all
  readonly code: string;
  readonly title: string;
  readonly hint: string;
  readonly offset: number | undefined;
  readonly retryAfter: number | undefined; // seconds

  constructor(from: {
    status: number; code?: string; title?: string; detail?: string; hint?: string;
    offset?: number | undefined; retryAfter?: number | undefined;
  }) {
    super(from.detail || from.title || "no reason was given");
    this.status = from.status;
    this.code = from.code ?? "";
    this.title = from.title ?? "";
    this.hint = from.hint ?? "";
    this.offset = from.offset;
    this.retryAfter = from.retryAfter;
  }
}

export function isAbort(e: unknown): boolean {
  return e instanceof DOMException && e.name === "AbortError";
}

export function asProblem(e: unknown): Problem {
  if (e instanceof Problem) return e;
  return new Problem({ status: 0, title: "Not understood", detail: e instanceof Error ? e.message : String(e) });
}

async function problemOf(response: Response): Promise<Problem> {
  const after = Number(response.headers.get("retry-after") ?? NaN);
  const base = { status: response.status, title: response.statusText, retryAfter: after >= 0 ? after : undefined };
  try {
    const body: unknown = await response.json();
    if (body !== null && typeof body === "object") return new Problem({ ...base, ...body, status: response.status });
  } catch (e) {
    if (isAbort(e)) throw e;
  }
  return new Problem({ ...base, detail: `The server answered ${response.status} without a reason.` });
}

async function ask(url: string, init: RequestInit): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(url, init);
  } catch (e) {
    if (isAbort(e)) throw e;
    throw new Problem({
      status: 0, title: "No answer", detail: "The server does not answer.", hint: "Is xprofd still running? Is the network up?",
    });
  }
  if (!response.ok) throw await problemOf(response);
  return response;
}

const get = (url: string, signal?: AbortSignal): Promise<Response> => ask(url, signal ? { signal } : {});

/** The API of one project. */
export class Api {
  constructor(readonly root: string) {}

  url(what: string, params: Params = {}): string {
    return apiUrl(this.root, what, params);
  }

  async json<T>(what: string, params: Params = {}, signal?: AbortSignal): Promise<T> {
    const response = await get(this.url(what, params), signal);
    return parseExact(await response.text()) as T;
  }

  /** And what the server's clock says, in ms; NaN: nothing. */
  async timed<T>(what: string, params: Params = {}, signal?: AbortSignal): Promise<{ body: T; at: number }> {
    const response = await get(this.url(what, params), signal);
    return { body: parseExact(await response.text()) as T, at: Date.parse(response.headers.get("date") ?? "") };
  }

  /** Changes something. Type and header say that it was no form of another site that asked. */
  async send<T>(method: "POST" | "DELETE", what: string, params: Params, body?: object): Promise<T> {
    const headers = { "content-type": "application/json", "x-xprofd": "1" };
    const response = await ask(this.url(what, params), { method, headers, ...(body ? { body: JSON.stringify(body) } : {}) });
    return (response.status === 204 ? undefined : parseExact(await response.text())) as T;
  }

  /** Sends bytes as they are. */
  async post<T>(what: string, params: Params, body: Blob, signal: AbortSignal): Promise<T> {
    const headers = { "content-type": "application/octet-stream", "x-xprofd": "1" };
    const response = await ask(this.url(what, params), { method: "POST", headers, body, signal });
    return parseExact(await response.text()) as T;
  }

  async bytes(what: string, params: Params = {}, signal?: AbortSignal): Promise<Uint8Array> {
    const response = await get(this.url(what, params), signal);
    return new Uint8Array(await response.arrayBuffer());
  }
}
