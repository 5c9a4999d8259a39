import { expect, test } from "vitest";
import { categorize, colourOf, headOf, hashName, lightPalette, oklch, operationOf, palettes } from "../src/model/colour";

test("names fall into the category an expert expects", () => {
  const on = (name: string) => categorize(name, "device");
  expect(["%all-reduce.12 = f32[8] all-reduce(x)", "ncclDevKernel_AllReduce", "send.3", "collective-permute-start"].map(on))
    .toEqual(["communication", "communication", "communication", "communication"]);
  expect(["copy-done.2", "MemcpyH2D", "async-copy"].map(on)).toEqual(["copy", "copy", "copy"]);
  expect(["fusion.1", "convolution.2", "jit_step(123)"].map(on)).toEqual(["compute", "compute", "compute"]);
  expect(on("infeed.1")).toBe("input");
  expect(on("dependency-wait")).toBe("idle");
  expect(categorize("PjitFunction(train)", "host")).toBe("host");
});

test("operands in the HLO text do not decide the category", () => {
  expect(categorize("%fusion.1 = f32[] fusion(%all-reduce.3)", "device")).toBe("compute");
  expect(headOf("%fusion.1 = f32[] fusion()")).toBe("%fusion.1");
});

test("a name has its colour always, numbered ones of an operation share a hue", () => {
  expect(colourOf("fusion.1", "compute", lightPalette)).toBe(colourOf("fusion.1", "compute", lightPalette));
  expect(["fusion.1", "%fusion.22 = x", "fusion", "fusion_7"].map(operationOf)).toEqual(["fusion", "fusion", "fusion", "fusion"]);
  expect(hashName("a")).not.toBe(hashName("b"));
});

test("every colour is bright enough for dark text", () => {
  const luminance = (hex: string) => {
    const [r, g, b] = [1, 3, 5].map((i) => {
      const x = parseInt(hex.slice(i, i + 2), 16) / 255;
      return x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r! + 0.7152 * g! + 0.0722 * b!;
  };
  const text = luminance("#10141b");
  for (const palette of Object.values(palettes).flatMap((p) => [p.light, p.dark]))
    for (const category of ["compute", "communication", "copy", "input", "host", "idle"] as const)
      for (let i = 0; i < 200; i++) {
        const contrast = (luminance(colourOf(`op-${i}`, category, palette)) + 0.05) / (text + 0.05);
        expect(contrast).toBeGreaterThan(4.5);
      }
});

test("OKLCH meets known colours", () => {
  expect(oklch(1, 0, 0)).toBe("#ffffff");
  expect(oklch(0, 0, 0)).toBe("#000000");
  expect(oklch(0.628, 0.2577, 29.23)).toBe("#ff0000");
});
