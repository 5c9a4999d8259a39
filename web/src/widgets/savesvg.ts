// A drawing as a file of its own: what style sheets say of it is written into it.
import { save } from "./save";

const LOOKS = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-opacity", "stroke-dasharray", "font-family", "font-size", "font-weight", "text-anchor", "opacity", "paint-order"] as const;

/** Of itself; `background` is its sheet's colour. */
export function svgText(svg: SVGSVGElement, background: string): string {
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
  // What XML cannot hold, as names of ops may: such a file could not be opened.
  return new XMLSerializer().serializeToString(copy).replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, "\ufffd");
}

export function saveSvg(name: string, svg: SVGSVGElement, background: string): void {
  save(`${name}.svg`, "image/svg+xml", svgText(svg, background));
}

/** Two points of the picture for each of the drawing. */
export async function savePng(name: string, svg: SVGSVGElement, background: string): Promise<void> {
  const picture = new Image();
  picture.src = `data:image/svg+xml,${encodeURIComponent(svgText(svg, background))}`;
  await picture.decode();
  const canvas = document.createElement("canvas");
  canvas.width = 2 * svg.clientWidth;
  canvas.height = 2 * svg.clientHeight;
  canvas.getContext("2d")?.drawImage(picture, 0, 0, canvas.width, canvas.height);
  canvas.toBlob((blob) => blob && save(`${name}.png`, "image/png", blob), "image/png");
}
