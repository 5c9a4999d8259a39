// A drawing as a file of its own: what style sheets say of it is written into it.
import { save } from "./save";

const LOOKS = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-opacity", "stroke-dasharray", "font-family", "font-size", "font-weight", "text-anchor", "opacity"] as const;

export function saveSvg(name: string, svg: SVGSVGElement, background: string): void {
  const copy = svg.cloneNode(true) as SVGSVGElement;
  const from = svg.querySelectorAll("*");
  copy.querySelectorAll("*").forEach((e, i) => {
    const looks = getComputedStyle(from[i]!);
    for (const l of LOOKS) {
      const v = looks.getPropertyValue(l);
      if (v && v !== "none" || l === "fill") e.setAttribute(l, v);
    }
    e.removeAttribute("class");
    e.removeAttribute("style");
  });
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  const sheet = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  const box = svg.viewBox.baseVal;
  for (const [k, v] of Object.entries({ x: box.x, y: box.y, width: box.width || svg.clientWidth, height: box.height || svg.clientHeight, fill: background })) sheet.setAttribute(k, String(v));
  copy.prepend(sheet);
  save(`${name}.svg`, "image/svg+xml", new XMLSerializer().serializeToString(copy));
}
