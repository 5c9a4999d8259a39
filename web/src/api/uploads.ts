// A file that is brought to look at it: in pieces, so that neither side holds more of it than one.
import { Problem, type Api } from "./client";

export interface Upload {
  run: string;
  bytes: number;
  received: number;
  piece_bytes: number;
  expires_ms: number;
}

const TRIES = 4;
const PAUSE_MS = 400;

const pause = (ms: number, signal: AbortSignal): Promise<void> =>
  new Promise((done, failed) => {
    const timer = setTimeout(done, ms);
    signal.addEventListener("abort", () => (clearTimeout(timer), failed(new DOMException("", "AbortError"))), { once: true });
  });

/** A piece that got lost on the way is sent again: the server takes it as done if it was there. */
async function sendPiece(api: Api, run: string, at: number, piece: Blob, signal: AbortSignal): Promise<Upload> {
  for (let tried = 1; ; tried++)
    try {
      return await api.post<Upload>("upload_piece", { run, at }, piece, signal);
    } catch (e) {
      const passes = e instanceof Problem && [0, 429, 502, 503, 504].includes(e.status);
      if (!passes || tried === TRIES) throw e;
      await pause(PAUSE_MS * tried, signal);
    }
}

/** The bytes of a folder, or of a file that was taken away, cannot be had. */
async function readable(file: File): Promise<void> {
  try {
    await file.slice(0, 1).arrayBuffer();
  } catch {
    throw new Problem({ status: 0, title: "Not readable", detail: `The browser cannot read ${file.name || "it"}.`, hint: "Is it a folder? Drop the file that is in it: <host>.xplane.pb." });
  }
}

export async function upload(api: Api, file: File, told: (u: Upload) => void, signal: AbortSignal): Promise<Upload> {
  await readable(file);
  let u = await api.send<Upload>("POST", "uploads", {}, { name: file.name, bytes: file.size });
  try {
    while (u.received < u.bytes) {
      told(u);
      signal.throwIfAborted();
      u = await sendPiece(api, u.run, u.received, file.slice(u.received, u.received + u.piece_bytes), signal);
    }
    told(u);
    return u;
  } catch (e) {
    const gone = e instanceof Problem && (e.status === 422 || e.status === 404);
    if (!gone) dropUpload(api, u.run).catch(() => undefined); // it would expire by itself, only later
    throw e;
  }
}

export const dropUpload = (api: Api, run: string): Promise<undefined> => api.send<undefined>("DELETE", "uploads", { run });
