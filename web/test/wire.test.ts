import { expect, test } from "vitest";
import { Wire, packedIds, packedNumbers, zigzag } from "../src/api/wire";
import { varint, zigzag as zz } from "./encode";

test("a varint of any length reads back", () => {
  for (const n of [0, 1, 127, 128, 300, 2 ** 28 - 1, 2 ** 28, 2 ** 32 - 1, 2 ** 32, 2 ** 35, 2 ** 52 + 1, Number.MAX_SAFE_INTEGER])
    expect(new Wire(Uint8Array.from(varint(n))).unsigned()).toBe(n);
});

test("a varint beyond 2^53 is exact as a bigint and nearest as a number", () => {
  const wide = 2n ** 63n + 12345n;
  expect(new Wire(Uint8Array.from(varint(wide))).bigUnsigned()).toBe(wide);
  expect(new Wire(Uint8Array.from(varint(wide))).unsigned()).toBe(Number(wide));
  expect(new Wire(Uint8Array.from(varint(-5n))).bigSigned()).toBe(-5n);
  expect(new Wire(Uint8Array.from(varint(2n ** 64n - 1n))).unsigned()).toBe(2 ** 64);
});

test("zigzag brings the sign back", () => {
  for (const n of [0, 1, -1, 2, -2, 123456789, -987654321012]) expect(zigzag(Number(zz(n)))).toBe(n);
});

test("a message that is cut off is refused, not read past its end", () => {
  expect(() => new Wire(Uint8Array.from([0x80, 0x80])).unsigned()).toThrow(/cut off/);
  expect(() => new Wire(Uint8Array.from([10, 1, 2])).bytes()).toThrow(/10 bytes announced/);
  expect(() => new Wire(Uint8Array.from(Array(11).fill(0x80))).unsigned()).toThrow(/more than ten/);
  expect(() => new Wire(Uint8Array.from([1, 2])).skip(1)).toThrow(/cut off/);
  expect(() => new Wire(Uint8Array.from([1, 2])).skip(3)).toThrow(/wire type 3/);
});

test("packed numbers keep their order", () => {
  expect([...packedNumbers(Uint8Array.from([1, 300, 0, 2 ** 40].flatMap(varint)))]).toEqual([1, 300, 0, 2 ** 40]);
});

test("ids add up, and stay exact above 2^53", () => {
  const ids = (list: bigint[]) => {
    let before = 0n;
    return packedIds(Uint8Array.from(list.flatMap((id) => {
      const step = zz(BigInt.asIntN(64, id - before));
      before = id;
      return varint(step);
    })));
  };
  expect([...ids([1000n, 990n, 2n ** 40n])]).toEqual([1000, 990, 2 ** 40]);
  const wide = [2n ** 63n + 1n, 2n ** 63n + 3n, 7n];
  expect([...ids(wide)]).toEqual(wide);
});
