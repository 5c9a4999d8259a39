// Captures: profiles that the server takes from programs that run (docs/api.md, "captures").
import type { Api } from "./client";

export interface Target {
  name: string; // the host of its profiles
  address: string;
  bytes_per_s: number | null; // of its last capture; null: none yet
  busy: boolean;
}

export interface Continuous {
  target: string;
  since_ms: number | null;
  state: "running" | "unknown";
  by: string | null;
  message: string | null;
}

export interface Levels {
  host: number; // 0 … 3
  device: number;
  python: number;
}

export type Phase = "waiting" | "capturing" | "collecting" | "done";
export type Outcome = "SUCCEEDED" | "PARTIAL" | "FAILED" | "CANCELLED";
export type TargetOutcome = "SUCCEEDED" | "EMPTY" | "BUSY" | "TOO_LARGE" | "UNSUPPORTED" | "UNREACHABLE" | "TIMEOUT" | "FAILED" | "CANCELLED";

export interface TargetResult {
  target: string;
  phase: Phase;
  outcome: TargetOutcome | null;
  grpc_status: number | null;
  message: string;
  hint: string;
  bytes: number | null;
  attempts: number;
}

export type Options = Record<string, string | boolean | number>;

export interface Capture {
  id: string;
  kind: "on_demand" | "snapshot";
  run: string;
  phase: Phase;
  outcome: Outcome | null;
  began_ms: number;
  ends_ms: number;
  ended_ms: number | null;
  duration_ms: number;
  delay_ms: number;
  by: string | null;
  note: string;
  levels: Levels;
  options: Options;
  targets: TargetResult[];
}

export interface Captures {
  enabled: boolean;
  reason: string | null;
  mode: string;
  location: string;
  targets: Target[];
  continuous: Continuous[];
  captures: Capture[]; // newest first
}

export interface Wanted {
  targets: string[];
  run?: string;
  duration_ms: number;
  delay_ms: number;
  levels: Levels;
  options: Options;
}

export interface Refused {
  target: string;
  outcome: string;
  message: string;
  hint: string;
}

export const readCaptures = (api: Api, signal?: AbortSignal): Promise<{ body: Captures; at: number }> => api.timed<Captures>("captures", {}, signal);
export const readCapture = (api: Api, id: string, signal?: AbortSignal): Promise<Capture> => api.json<Capture>("captures", { id }, signal);
export const startCapture = (api: Api, wanted: Wanted): Promise<Capture> => api.send<Capture>("POST", "captures", {}, wanted);

/** What was recorded until now is kept, or with `drop` nothing. */
export const endCapture = (api: Api, id: string, drop: boolean): Promise<Capture> =>
  api.send<Capture>("DELETE", "captures", { id, ...(drop ? { drop: 1 } : {}) });

export const setContinuous = (api: Api, targets: string[], on: boolean, device: number): Promise<{ continuous: Continuous[]; failed: Refused[] }> =>
  api.send("POST", "captures/continuous", {}, { targets, levels: { device }, on });

/** Without targets, of all that record. */
export const takeSnapshot = (api: Api, targets?: string[]): Promise<Capture> =>
  api.send<Capture>("POST", "captures/snapshot", {}, targets ? { targets } : {});
