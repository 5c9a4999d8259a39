import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { correction, qrOf } from "../src/model/qr";

test("bytes of correction are those of the standard's example", () => {
  // 01234567 in version 1-M: ISO/IEC 18004, annex I.
  const data = Uint8Array.from([0x10, 0x20, 0x0c, 0x56, 0x61, 0x80, 0xec, 0x11, 0xec, 0x11, 0xec, 0x11, 0xec, 0x11, 0xec, 0x11]);
  expect([...correction(data, 10)]).toEqual([0xa5, 0x24, 0xd4, 0xc1, 0xed, 0x36, 0xc7, 0x87, 0x2c, 0x55]);
});

test("squares are, module by module, those that another encoder makes with the same mask", () => {
  const found = (text: string): string => {
    const { size, dark } = qrOf(text, 0)!;
    expect(dark.length).toBe(size * size);
    return `${size} ${createHash("sha256").update(dark.join("")).digest("hex").slice(0, 16)}`;
  };
  expect(["a", "x".repeat(100), "é".repeat(120), "z".repeat(1200), "q".repeat(2953)].map(found)).toEqual([
    "21 c8b94007197ad57d", "37 78a0bac7e40a2e15", "57 a3a411956e9174f0", "117 2735c6522e7e4c9b", "177 ecef0265ec361dde",
  ]);
});

test("what is too long has no code", () => {
  expect(qrOf("q".repeat(2954))).toBeNull();
  expect(qrOf("")!.size).toBe(21);
});
