// Colours of the canvas, taken from the style sheet so that there is one place for them.

export interface Theme {
  dark: boolean;
  background: string;
  heading: string;
  line: string; // between rows
  grid: string;
  text: string;
  muted: string;
  onRect: string; // text on a rectangle
  accent: string;
  areaFill: string;
  selected: string;
  flow: string;
  font: string;
}

export function readTheme(): Theme {
  const style = getComputedStyle(document.documentElement);
  const get = (name: string): string => style.getPropertyValue(name).trim();
  return {
    dark: get("--dark") === "1",
    background: get("--bg"),
    heading: get("--plane"),
    line: get("--rule-soft"),
    grid: get("--grid"),
    text: get("--text"),
    muted: get("--muted"),
    onRect: get("--on-rect"),
    accent: get("--accent"),
    areaFill: get("--area"),
    selected: get("--selected"),
    flow: get("--flow"),
    font: get("--font"),
  };
}
