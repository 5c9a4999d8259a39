// compress.mjs DIST - FILE.gz and FILE.br beside each file, and a look at the budgets.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";

// Bytes of gzip: what the first page needs before it can draw anything, and all there is.
const FIRST = 100_000;
const ALL = 300_000;

const dist = process.argv[2];
const sizes = new Map(); // by file name: they are hashed, so no two are the same
const texts = new Map();
for (const entry of readdirSync(dist, { recursive: true, withFileTypes: true })) {
  if (!entry.isFile() || /\.(gz|br|map)$/.test(entry.name) || entry.name.startsWith(".")) continue;
  const path = join(entry.parentPath, entry.name);
  const raw = readFileSync(path);
  const gz = gzipSync(raw, { level: 9 });
  writeFileSync(path + ".gz", gz);
  writeFileSync(path + ".br", brotliCompressSync(raw, {
    params: { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: raw.length },
  }));
  sizes.set(entry.name, gz.length);
  texts.set(entry.name, raw.toString("utf8"));
}

/** index.html, what it names, and what that imports before it runs. */
function firstPage() {
  const found = new Set();
  const todo = ["index.html"];
  while (todo.length) {
    const name = todo.pop();
    if (found.has(name) || !sizes.has(name)) continue;
    found.add(name);
    const text = texts.get(name);
    const links = name.endsWith(".html") ? /(?:src|href)="([^"]+)"/g : /(?:\bfrom|\bimport)\s*["'](\.[^"']+)["']/g;
    for (const m of text.matchAll(links)) todo.push(basename(m[1]));
  }
  return found;
}

const sum = (names) => [...names].reduce((a, n) => a + sizes.get(n), 0);
const first = sum(firstPage());
const all = sum(sizes.keys());
console.log(`web: ${first} bytes of gzip for the first page (budget ${FIRST}), ${all} in all (budget ${ALL})`);
if (first > FIRST || all > ALL) process.exit(1);
