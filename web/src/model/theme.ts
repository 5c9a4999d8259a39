// Light, dark, or what the system says.
import { effect, signal } from "@preact/signals";

export type Choice = "auto" | "light" | "dark";
const KEY = "xprofd.theme";

function stored(): Choice {
  try {
    const value = localStorage.getItem(KEY);
    return value === "light" || value === "dark" ? value : "auto";
  } catch {
    return "auto"; // storage may be forbidden
  }
}

export const choice = signal<Choice>(stored());
const system = window.matchMedia("(prefers-color-scheme: dark)");
const systemDark = signal(system.matches);
system.addEventListener("change", (e) => (systemDark.value = e.matches));

/** What is shown; set after the style sheet knows. */
export const dark = signal(false);

effect(() => {
  const isDark = choice.value === "auto" ? systemDark.value : choice.value === "dark";
  document.documentElement.dataset.theme = isDark ? "dark" : "light";
  dark.value = isDark;
});

export function cycleTheme(): void {
  const next: Record<Choice, Choice> = { auto: "light", light: "dark", dark: "auto" };
  choice.value = next[choice.value];
  try {
    localStorage.setItem(KEY, choice.value);
  } catch {
    // stays for this page only
  }
}
