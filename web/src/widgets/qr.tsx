// An address as a picture that a telephone reads. Black on white in both themes: readers want it so.
import { useMemo } from "preact/hooks";
import { qrOf } from "../model/qr";

const QUIET = 4; // modules around it

export default function QrPicture({ text }: { text: string }) {
  const code = useMemo(() => qrOf(text), [text]);
  if (!code) return <p class="none">The address is too long for a code: make a link, which is short.</p>;
  const { size, dark } = code;
  const whole = size + 2 * QUIET;
  const path: string[] = [];
  for (let y = 0; y < size; y++)
    for (let x = 0; x < size; x++) if (dark[y * size + x]) path.push(`M${x + QUIET} ${y + QUIET}h1v1h-1z`);
  return (
    <svg class="qr" viewBox={`0 0 ${whole} ${whole}`} role="img" aria-label={`QR code of ${text.length > 80 ? "the address" : text}`} shape-rendering="crispEdges">
      <rect width={whole} height={whole} fill="#fff" />
      <path d={path.join("")} fill="#000" />
    </svg>
  );
}
