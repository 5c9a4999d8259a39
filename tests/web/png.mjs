// Pictures as pixels and back: what a browser's screenshot is (8 bits, not interlaced), and small
// files with a palette for goldens.
import { deflateSync, inflateSync } from "node:zlib";

const SIGN = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
const CHANNELS = { 0: 1, 2: 3, 3: 1, 4: 2, 6: 4 };

function* chunks(png) {
  for (let at = SIGN.length; at + 12 <= png.length; ) {
    const n = png.readUInt32BE(at);
    yield [png.toString("latin1", at + 4, at + 8), png.subarray(at + 8, at + 8 + n)];
    at += 12 + n;
  }
}

const paeth = (a, b, c) => {
  const pa = Math.abs(b - c);
  const pb = Math.abs(a - c);
  const pc = Math.abs(a + b - 2 * c);
  return pa <= pb && pa <= pc ? a : pb <= pc ? b : c;
};

/** Lines without their filters. */
function plainLines(raw, height, bytes, step) {
  const out = Buffer.alloc(height * bytes);
  for (let y = 0; y < height; y++) {
    const filter = raw[y * (bytes + 1)];
    for (let x = 0; x < bytes; x++) {
      const at = y * bytes + x;
      const left = x >= step ? out[at - step] : 0;
      const up = y > 0 ? out[at - bytes] : 0;
      const corner = x >= step && y > 0 ? out[at - bytes - step] : 0;
      const guess = filter === 0 ? 0 : filter === 1 ? left : filter === 2 ? up : filter === 3 ? (left + up) >> 1 : paeth(left, up, corner);
      out[at] = raw[y * (bytes + 1) + 1 + x] + guess;
    }
  }
  return out;
}

/** { width, height, rgb } */
export function decode(png) {
  let head;
  let palette;
  const data = [];
  for (const [type, body] of chunks(png)) {
    if (type === "IHDR") head = { width: body.readUInt32BE(0), height: body.readUInt32BE(4), depth: body[8], kind: body[9], interlaced: body[12] };
    else if (type === "PLTE") palette = body;
    else if (type === "IDAT") data.push(body);
  }
  if (head.depth !== 8 || head.interlaced) throw new Error("a PNG of another kind than is made here");
  const step = CHANNELS[head.kind];
  const lines = plainLines(inflateSync(Buffer.concat(data)), head.height, head.width * step, step);
  const rgb = Buffer.alloc(head.width * head.height * 3);
  for (let i = 0; i < head.width * head.height; i++)
    for (let c = 0; c < 3; c++) rgb[3 * i + c] = palette ? palette[3 * lines[i] + c] : lines[i * step + (step > 2 ? c : 0)];
  return { width: head.width, height: head.height, rgb };
}

const TABLE = Int32Array.from({ length: 256 }, (_, n) => {
  for (let k = 0; k < 8; k++) n = n & 1 ? (n >>> 1) ^ 0xedb88320 : n >>> 1;
  return n;
});

function chunk(type, body) {
  const named = Buffer.concat([Buffer.from(type, "latin1"), body]);
  let crc = -1;
  for (const b of named) crc = TABLE[(crc ^ b) & 255] ^ (crc >>> 8);
  const out = Buffer.alloc(named.length + 8);
  out.writeUInt32BE(body.length, 0);
  named.copy(out, 4);
  out.writeUInt32BE((crc ^ -1) >>> 0, out.length - 4);
  return out;
}

/** With the colours that there is most of, and a quarter for those that are far from all of these;
 * others become the nearest. */
export function encodeSmall({ width, height, rgb }, colours = 64) {
  const counts = new Map();
  const keyAt = (i) => (rgb[3 * i] << 16) | (rgb[3 * i + 1] << 8) | rgb[3 * i + 2];
  for (let i = 0; i < width * height; i++) counts.set(keyAt(i), (counts.get(keyAt(i)) ?? 0) + 1);
  const kept = [...counts].sort((a, b) => b[1] - a[1] || a[0] - b[0]).slice(0, Math.ceil(colours * 0.75)).map(([k]) => k);
  const far = (a, b) => [16, 8, 0].reduce((sum, s) => sum + (((a >> s) & 255) - ((b >> s) & 255)) ** 2, 0);
  const lost = new Map([...counts.keys()].map((k) => [k, Math.min(...kept.map((x) => far(k, x)))]));
  while (kept.length < Math.min(colours, counts.size)) {
    const weight = (k) => lost.get(k) * Math.sqrt(counts.get(k));
    const next = [...lost.keys()].reduce((best, k) => (weight(k) > weight(best) ? k : best));
    kept.push(next);
    for (const [k, d] of lost) lost.set(k, Math.min(d, far(k, next)));
  }
  const nearest = new Map();
  for (const k of counts.keys()) nearest.set(k, kept.reduce((best, x, i) => (far(k, x) < far(k, kept[best]) ? i : best), 0));
  const raw = Buffer.alloc(height * (width + 1));
  for (let i = 0; i < width * height; i++) raw[Math.floor(i / width) * (width + 1) + 1 + (i % width)] = nearest.get(keyAt(i));
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head[8] = 8;
  head[9] = 3;
  const palette = Buffer.from(kept.flatMap((k) => [k >> 16, (k >> 8) & 255, k & 255]));
  return Buffer.concat([SIGN, chunk("IHDR", head), chunk("PLTE", palette), chunk("IDAT", deflateSync(raw, { level: 9 })), chunk("IEND", Buffer.alloc(0))]);
}

const BLOCK = 5;
const NOTICED = 20; // of 255, of a block's mean

/** Of the blocks with something in them, the share whose mean colour differs: edges of letters may
 * fall a little elsewhere, what stands where may not. */
export function difference(a, b) {
  if (a.width !== b.width || a.height !== b.height) return 1;
  let differ = 0;
  let n = 0;
  for (let y = 0; y < a.height; y += BLOCK)
    for (let x = 0; x < a.width; x += BLOCK) {
      const sums = [0, 0, 0];
      let pixels = 0;
      let drawn = false;
      for (let v = y; v < Math.min(a.height, y + BLOCK); v++)
        for (let u = x; u < Math.min(a.width, x + BLOCK); u++, pixels++)
          for (let c = 0; c < 3; c++) {
            const at = 3 * (v * a.width + u) + c;
            sums[c] += a.rgb[at] - b.rgb[at];
            drawn ||= a.rgb[at] !== a.rgb[3 * (y * a.width + x) + c] || b.rgb[at] !== b.rgb[3 * (y * a.width + x) + c];
          }
      const differs = sums.some((s) => Math.abs(s) > NOTICED * pixels);
      if (drawn || differs) n++;
      if (differs) differ++;
    }
  return n ? differ / n : 0;
}
