import { expect, test } from "vitest";
import { Pattern } from "../src/model/regex";
import { serverFilter } from "../src/model/serverfilter";

// tests/unit/test_regex.c has the same.
const cases: [string, string, boolean][] = [
  ["abc", "xxABCxx", true], ["abc", "ab", false], ["", "", true], ["a.c", "a-c", true], ["a.c", "ac", false],
  ["^abc$", "abc", true], ["^abc$", "abcd", false], ["^abc$", "xabc", false], ["^$", "", true], ["^$", "x", false],
  ["(^|_)mxu_[01]$", "busy_mxu_1", true], ["(^|_)mxu_[01]$", "busymxu_1", false], ["(^|_)mxu_[01]$", "mxu_0", true],
  ["ab*c", "ac", true], ["ab*c", "abbbc", true], ["ab+c", "ac", false], ["ab+?c", "ac", false], ["ab+?c", "abbc", true], ["ab?c", "abbc", false],
  ["(ab|cd)+e", "abcde", true], ["(ab|cd)+e", "ae", false], ["(?:ab)(c)", "abc", true], ["a||b", "zzz", true],
  ["[^a-y]", "abz", true], ["[^a-z]", "abz", false], ["[]x]", "]", true], ["[a-]", "-", true], ["[\\d_]x", "7x", true], ["[^\\d]", "123", false],
  ["\\w\\s\\W", "a !", true], ["\\D", "77", false], ["\\.", "x", false], ["\\.\\*", "a.*", true], ["a\\tb", "a\tb", true],
  ["(foo$|bar)$", "foo", true], ["(foo$|bar)$", "food", false], ["(a$)$$", "ba", true], ["^(^foo|bar)", "foo", true], ["^(^foo|bar)", "xfoo", false],
  ["^^(^(^x))", "x", true], ["x(^y)", "xy", false],
  ["é+$", "caféé", true], ["^é+$", "éx", false],
  ["(a+)+$", `${"a".repeat(49)}b`, false], ["(a*)*b", "a".repeat(50), false],
];

test.each(cases)("/%s/ in %j: %s", (pattern, text, found) => {
  expect(new Pattern(pattern).test(text)).toBe(found);
});

test.each(["(", ")", "[a", "[", "*a", "+", "(?=a)", "a\\", "\\b", "[z-a]", "a{2}", "[é]", "(?", "|*", "(".repeat(16)])("/%s/ is refused with a sentence", (pattern) => {
  expect(() => new Pattern(pattern)).toThrow(/^at \d+: /);
});

test("a pattern has 64 places at most, and all of them count", () => {
  expect(new Pattern("a".repeat(64)).test("a".repeat(64))).toBe(true);
  expect(new Pattern("a".repeat(64)).test("a".repeat(63))).toBe(false);
  expect(() => new Pattern("a".repeat(65))).toThrow("64");
});

test("what makes others take for ever takes no time", () => {
  expect(new Pattern("^(a|a)*(a|a)*(a|a)*$").test(`${"a".repeat(200_000)}b`)).toBe(false);
});

test("the server is asked for one word or one expression, and only for what it understands", () => {
  const columns = ([["op", "op"], ["counter", "text"], ["count", "number"], ["async", "bool"]] as const).map(([id, type]) => ({ id, label: id, unit: "", type }));
  expect(serverFilter("dur>10us fusion -copy", columns)).toBe("fusion");
  expect(serverFilter("fusion counter:/mxu_[01]$/", columns)).toBe("/mxu_[01]$/");
  expect(serverFilter("op:/^copy/", columns)).toBe("/^copy/");
  expect(serverFilter("-/copy/ /fusion/", columns)).toBe("/fusion/");
  expect(serverFilter('-"one two three" four', columns)).toBe("four");
  expect(serverFilter("/(/ x", columns)).toBe("");
  expect(serverFilter("count:/^1/ copy", columns)).toBe("copy");
  expect(serverFilter("async:/true/", columns)).toBe("");
});
