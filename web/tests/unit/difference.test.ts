// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from "vitest";
import { changeOf, differenceFills, differenceTree, shadeOfChange, signedShare } from "../../src/flamegraph/difference";
import { layoutTree, spanOf } from "../../src/flamegraph/layout";
import { nodeName, ROOT } from "../../src/flamegraph/model";
import { DARK, LIGHT } from "../../src/flamegraph/palette";

const STACKS = {
  strings: ["all", "main", "gemm", "relu"],
  nodes: { name: [0, 1, 2, 3], parent: [-1, 0, 1, 1], a_ns: [100, 100, 60, 0], b_ns: [130, 130, 90, 20] },
  omitted: 0,
};

const NONE = new Set<string>();

describe("the flame graph of a difference", () => {
  test("is as wide as the mean of both sides, and says the change in words", () => {
    const tree = differenceTree(STACKS, NONE);
    expect(Array.from(tree.total)).toEqual([115, 115, 75, 10]);
    expect(Array.from(tree.self)).toEqual([0, 30, 75, 10]);
    expect(nodeName(tree, 2)).toBe("gemm");
    expect(tree.labels).toEqual(["all  +30.0\u202f%", "main  +30.0\u202f%", "gemm  +50.0\u202f%", "relu  only in B"]);
    expect(spanOf(layoutTree(tree), ROOT)).toEqual({ from: 0, to: 115 });
  });

  test("shortens the names of kernels, and no others", () => {
    const [kernel, operator] = ["void at::native::relu<float>(int)", "aten::relu"];
    const tree = differenceTree({ ...STACKS, strings: ["all", operator, kernel, "void f(int)"] }, new Set([kernel]));
    expect(tree.labels).toEqual(["all  +30.0\u202f%", "aten::relu  +30.0\u202f%", "relu<float>  +50.0\u202f%", "void f(int)  only in B"]);
    expect(nodeName(tree, 2)).toBe(kernel);
  });

  test("is refused if its columns differ in length", () => {
    expect(() => differenceTree({ ...STACKS, nodes: { ...STACKS.nodes, b_ns: [1] } }, NONE)).toThrow(/differ in length/);
    expect(() => differenceTree({ ...STACKS, nodes: { ...STACKS.nodes, parent: [-1, 0, 9, 1] } }, NONE)).toThrow(/has parent/);
  });

  test("changes have signs, and a side that lacks a frame is named", () => {
    expect([changeOf(10, 9), changeOf(10, 10), changeOf(0, 1), changeOf(1, 0), changeOf(0, 0)]).toEqual(["−10.0\u202f%", "±0\u202f%", "only in B", "only in A", ""]);
    expect(signedShare(0.5)).toBe("+50.0\u202f%");
  });

  test("colours are symmetric, and small changes have none", () => {
    expect([shadeOfChange(100, 102), shadeOfChange(100, 50), shadeOfChange(50, 100), shadeOfChange(0, 9), shadeOfChange(0, 0)]).toEqual([4, 0, 8, 8, 4]);
    for (const [theme, dark] of [[LIGHT, false], [DARK, true]] as const) expect(new Set(differenceFills(theme, dark)).size).toBe(10);
  });
});
