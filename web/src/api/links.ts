// Share links: what the server keeps about them, and how they are made and revoked.
import type { Api } from "./client";

export type Audience = "members" | "domain" | "anyone";

export interface Link {
  id: string;
  run: string;
  tool: string | null; // null: all pages of the run
  view: string;
  audience: Audience;
  domain: string | null;
  issued_ms: number;
  expires_ms: number;
}

export interface MadeLink extends Link {
  url: string; // below the project; told once
}

export interface KeptLink extends Link {
  by: string;
  revoked: boolean;
  expired: boolean;
  may_revoke: boolean;
}

export interface Links {
  max_minutes: number;
  domain: boolean; // whether one may share with a domain, and
  anyone: boolean; // with anyone
  more: boolean;
  next: string | null; // where the next page begins
  links: KeptLink[];
}

export interface WantedLink {
  run: string;
  view: string;
  tool?: string;
  audience: Audience;
  domain?: string;
  minutes: number;
}

export const listLinks = (api: Api, run: string): Promise<Links> => api.json<Links>("links", { run });
/** Of all runs, for an admin: run by run. */
export const listAllLinks = (api: Api, after?: string): Promise<Links> => api.json<Links>("links", { after });
export const makeLink = (api: Api, link: WantedLink): Promise<MadeLink> => api.send<MadeLink>("POST", "links", {}, link);

/** One, or without an id all of the run. */
export const revokeLink = (api: Api, run: string, id?: string): Promise<undefined> =>
  api.send<undefined>("DELETE", "links", { run, id });
