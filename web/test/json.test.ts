import { expect, test } from "vitest";
import { big, parseExact, wideIntegers } from "../src/api/json";

test("integers beyond 2^53 stay exact and others stay numbers", () => {
  const got = parseExact('{"a":9007199254740993,"b":9007199254740991,"c":-9223372036854775808,"d":1.5,"e":[18446744073709551615,3]}');
  expect(got).toEqual({ a: 9007199254740993n, b: 9007199254740991, c: -9223372036854775808n, d: 1.5, e: [18446744073709551615n, 3] });
});

test("digits inside strings are text, also behind escaped quotes", () => {
  const text = '{"x":"9007199254740993","y":"a\\"9007199254740993","z\\\\":9007199254740993}';
  expect(parseExact(text)).toEqual({ x: "9007199254740993", y: 'a"9007199254740993', "z\\": 9007199254740993n });
});

test("long fractions and exponents are doubles as ever", () => {
  expect(parseExact("[0.12345678901234567890,1.7976931348623157e308]")).toEqual([0.12345678901234568, 1.7976931348623157e308]);
  expect(wideIntegers("[1234567890123456]")).toEqual([]);
});

test("a string that looks like our own mark does no harm", () => {
  expect(parseExact('["\\u0001int:<b>",9007199254740993]')).toEqual(["\u0001int:<b>", 9007199254740993n]);
});

test("text that is no JSON throws", () => {
  expect(() => parseExact("{")).toThrow();
  expect(() => parseExact('"90071992547409931')).toThrow();
});

test("big takes what the API may hold", () => {
  expect([big(5), big(5n), big(null), big(undefined), big(1.6)]).toEqual([5n, 5n, 0n, 0n, 2n]);
});
