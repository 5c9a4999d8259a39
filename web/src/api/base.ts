// Where we are mounted: any prefix, then /p/<project>/, then one page name at most.

export interface Place {
  root: string; // path up to and with /p/<project>/
  project: string;
  page: string; // "", "run", "trace", …
}

export function place(pathname: string): Place {
  const at = pathname.lastIndexOf("/p/");
  if (at >= 0) {
    const rest = pathname.slice(at + 3);
    const slash = rest.indexOf("/");
    const project = slash < 0 ? rest : rest.slice(0, slash);
    const page = slash < 0 ? "" : rest.slice(slash + 1);
    if (project !== "") return { root: `${pathname.slice(0, at)}/p/${project}/`, project, page };
  }
  return { root: "/p/local/", project: "local", page: "" };
}

export function apiUrl(root: string, what: string, params: Params = {}): string {
  const query = Object.entries(params)
    .flatMap(([k, v]) => (Array.isArray(v) ? v : [v]).map((one) => [k, one] as const))
    .filter(([, v]) => v !== undefined)
    .map(([k, v]) => `${encodeURIComponent(k)}=${encodeURIComponent(String(v))}`)
    .join("&");
  return `${root}api/v1/${what}${query && "?" + query}`;
}

/** A list is the same parameter several times. */
export type Params = Record<string, string | number | bigint | undefined | readonly string[]>;
