// SPDX-License-Identifier: Apache-2.0
import { expect, test } from "vitest";
import { printable } from "../../src/printable";
import { parseProfile } from "../../src/flamegraph/model";
import { jsonOf } from "./trees";

test.each([
  ["main\u202etxt.exe", "main\\u202etxt.exe"],
  ["a\u200eb\u200fc\u061cd", "a\\u200eb\\u200fc\\u061cd"],
  ["\u202a\u202b\u202c\u202d\u2066\u2067\u2068\u2069", "\\u202a\\u202b\\u202c\\u202d\\u2066\\u2067\\u2068\\u2069"],
  ["line\u2028line\u2029line\nline\r", "line\\u2028line\\u2029line\\x0aline\\x0d"],
  ["\0\x1b[31m\x7f\x9b", "\\x00\\x1b[31m\\x7f\\x9b"],
])("characters that hide or reorder others are escaped: %j", (text, shown) => {
  expect(printable(text)).toBe(shown);
});

test.each(["void f<int>(char const*)", "größe", "内核", "مرحبا", "a\tb", "🙂", "e\u0301", "क्\u200dष", "1\u202f%", ""])("other text stays: %j", (text) => {
  expect(printable(text)).toBe(text);
});

test("a frame's label is printable, its name is as recorded", () => {
  const { functions } = parseProfile(jsonOf("main;safe\u202elive 5")).tree;
  expect(functions.name[1]).toBe("safe\u202elive");
  expect(functions.shown[1]).toBe("safe\\u202elive");
});
