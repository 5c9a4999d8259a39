// Light, dark, or what the system says.
import { batch, computed, effect, signal } from "@preact/signals";
import { palettes, type PaletteName } from "./colour";

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

/* --- colours of events --- */

const COLOURS = "xprofd.colours";

function storedPalette(): PaletteName {
  try {
    const value = localStorage.getItem(COLOURS);
    return value === "safe" || value === "contrast" ? value : "usual";
  } catch {
    return "usual";
  }
}

const own = signal<PaletteName>(storedPalette());
/** The one that an address names: it holds as long as that address is there. */
const named = signal<PaletteName | null>(null);

export const paletteName = computed(() => named.value ?? own.value);

export const palette = computed(() => palettes[paletteName.value][dark.value ? "dark" : "light"]);

export function namePalette(name: PaletteName | null): void {
  named.value = name;
}

/** What an address has to say, so that the picture comes back from it; null: nothing. */
export const paletteToName = computed(() => (paletteName.value === "usual" && own.value === "usual" ? null : paletteName.value));

/** One's own from now on, in place of what the address says. */
export function choosePalette(name: PaletteName): void {
  batch(() => {
    own.value = name;
    named.value = null;
  });
  try {
    localStorage.setItem(COLOURS, name);
  } catch {
    // stays for this page only
  }
}
