// compress.mjs DIST - FILE.gz and FILE.br beside each file, and a look at the budget.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";

const BUDGET = 100_000; // bytes of gzip for the first page, scripts and styles

const dist = process.argv[2];
let total = 0;
for (const entry of readdirSync(dist, { recursive: true, withFileTypes: true })) {
  if (!entry.isFile() || /\.(gz|br|map)$/.test(entry.name) || entry.name.startsWith(".")) continue;
  const path = join(entry.parentPath, entry.name);
  const raw = readFileSync(path);
  const gz = gzipSync(raw, { level: 9 });
  writeFileSync(path + ".gz", gz);
  writeFileSync(path + ".br", brotliCompressSync(raw, {
    params: { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: raw.length },
  }));
  total += gz.length;
}
console.log(`web: ${total} bytes of gzip in all (budget ${BUDGET})`);
if (total > BUDGET) process.exit(1);
