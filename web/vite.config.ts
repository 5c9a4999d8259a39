import { defineConfig } from "vite";

// Pages lie one level below /p/<project>/, so that "./assets/…" is right wherever the site is mounted.
export default defineConfig({
  base: "./",
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    target: "es2022",
    assetsInlineLimit: 0, // nothing inline: the page's Content-Security-Policy forbids it
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
});
