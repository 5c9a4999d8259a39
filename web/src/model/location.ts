// The browser's address as a signal. push for discrete steps, replace while something moves.
import { signal } from "@preact/signals";
import { place, type Place } from "../api/base";

export interface Here extends Place {
  search: string;
}

function read(): Here {
  return { ...place(window.location.pathname), search: window.location.search };
}

export const here = signal<Here>(read());

window.addEventListener("popstate", () => (here.value = read()));

/** The address was rewritten in place: links that hand it on say what it says now. */
export function rewritten(): void {
  here.value = read();
}

export function go(url: string, replace = false): void {
  const target = new URL(url, window.location.href);
  if (target.href !== window.location.href)
    window.history[replace ? "replaceState" : "pushState"](null, "", target.href);
  here.value = read();
}

/** For links that stay inside: plain left clicks are ours, all others the browser's. */
export function follow(e: MouseEvent): void {
  const link = (e.target as Element | null)?.closest("a[href]");
  if (!(link instanceof HTMLAnchorElement) || e.defaultPrevented) return;
  if (e.button !== 0 || e.metaKey || e.ctrlKey || e.shiftKey || e.altKey || link.target || link.hasAttribute("download")) return;
  if (link.origin !== window.location.origin || !link.pathname.startsWith(here.value.root)) return;
  e.preventDefault();
  go(link.href);
}
