// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from "vitest";
import { fitText } from "../../src/flamegraph/draw";
import { foldFunctions } from "../../src/flamegraph/fold";
import { groupFunctions, hiddenFunctions } from "../../src/flamegraph/groups";
import { firstBeyond, layoutTree, nextBeyond, nodeAt, spanOf } from "../../src/flamegraph/layout";
import { findPath, nodeName, parseProfile, pathHash, ROOT } from "../../src/flamegraph/model";
import { matched, matchName, matchText } from "../../src/flamegraph/search";
import { sortedFunctions, totalsByFunction } from "../../src/flamegraph/table";
import { walk } from "../../src/flamegraph/walk";
import { DEFAULT_VIEW } from "../../src/state/view";
import { find, jsonOf, stacksOf, treeOf } from "./trees";

const SMALL = treeOf("main;parse;read 30", "main;parse 10", "main;write 40", "idle 20");

describe("model", () => {
  test("a subtree is the range from a node to its end", () => {
    const parse = find(SMALL, "parse");
    expect(SMALL.end[ROOT]).toBe(SMALL.count);
    expect(SMALL.end[parse]! - parse).toBe(2);
    expect(nodeName(SMALL, parse + 1)).toBe("read");
  });

  test.each([
    ["a parent after its child", (j: ReturnType<typeof jsonOf>) => (j.nodes.parent[1] = 3)],
    ["a function that is not there", (j: ReturnType<typeof jsonOf>) => (j.nodes.function[1] = 99)],
    ["a binary that is not there", (j: ReturnType<typeof jsonOf>) => (j.functions.binary[0] = 7)],
    ["columns of different lengths", (j: ReturnType<typeof jsonOf>) => j.nodes.self.pop()],
    ["intervals for some nodes only", (j: ReturnType<typeof jsonOf>) => (j.nodes.interval = [1])],
    ["function columns of different lengths", (j: ReturnType<typeof jsonOf>) => j.functions.line.pop()],
    ["a missing mark of internal functions", (j: ReturnType<typeof jsonOf>) => j.functions.internal.pop()],
  ])("%s is refused as malformed", (_, damage) => {
    const json = jsonOf("main;parse 1", "idle 2");
    damage(json);
    expect(() => parseProfile(json)).toThrow(/can't be read/);
  });

  test("a path hash finds the same frame in other data, and nothing where the path is missing", () => {
    const hash = pathHash(SMALL, find(SMALL, "read"));
    expect(hash).toMatch(/^[0-9a-f]{16}$/);
    const later = treeOf("new;main 500", "main;write 400", "main;parse;read 1");
    expect(nodeName(later, findPath(later, hash)!)).toBe("read");
    expect(findPath(treeOf("main;read 3"), hash)).toBeNull();
  });

  test("path hashes of many frames differ", () => {
    const stacks = Array.from({ length: 3000 }, (_, i) => `a${i % 7};b${i % 131};c${i} 1`);
    const tree = treeOf(...stacks);
    const hashes = new Set(Array.from({ length: tree.count }, (_, i) => pathHash(tree, i)));
    expect(hashes.size).toBe(tree.count);
  });
});

describe("layout", () => {
  const layout = layoutTree(SMALL);

  test("children lie side by side from their parent's left edge, self time free on the right", () => {
    expect(spanOf(layout, find(SMALL, "main"))).toEqual({ from: 0, to: 80 });
    expect(spanOf(layout, find(SMALL, "idle"))).toEqual({ from: 80, to: 100 });
    expect(spanOf(layout, find(SMALL, "parse"))).toEqual({ from: 0, to: 40 });
    expect(spanOf(layout, find(SMALL, "read"))).toEqual({ from: 0, to: 30 });
  });

  test("a point finds its frame; over self time or outside the graph it finds none", () => {
    const at = (row: number, x: number) => {
      const node = nodeAt(layout, row, x);
      return node === null ? null : nodeName(SMALL, node);
    };
    expect([at(0, 50), at(1, 79.9), at(1, 80), at(3, 29.9)]).toEqual(["all", "main", "idle", "read"]);
    expect([at(3, 30), at(2, 90), at(4, 1), at(-1, 1)]).toEqual([null, null, null, null]);
  });

  test("both searches agree with a scan", () => {
    const right = Float64Array.from([1, 2, 2, 5, 9]);
    for (const x of [0, 1, 1.5, 2, 8.9, 9, 10]) {
      const scan = right.findIndex((value) => value > x);
      expect(firstBeyond(right, 0, 5, x)).toBe(scan < 0 ? 5 : scan);
      for (let low = 0; low <= 5; low++) expect(nextBeyond(right, low, 5, x)).toBe(firstBeyond(right, low, 5, x));
    }
  });
});

test("a label is cut to its room, between characters", () => {
  const context = { measureText: () => ({ width: 10 }) } as unknown as CanvasRenderingContext2D;
  expect(fitText(context, "abcdef", 60)).toBe("abcdef");
  expect(fitText(context, "abcdef", 50)).toBe("abcd…");
  expect(fitText(context, "abcdef", 20)).toBe("");
  expect(fitText(context, "abc\u{1f680}def", 50)).toBe("abc…");
});

describe("search", () => {
  test("nested matches count once", () => {
    const tree = treeOf("read;read_all;read 30", "write 70");
    expect(matched(tree, ROOT, matchText(tree.functions, "READ")!)).toEqual({ nodes: 3, total: 30 });
  });

  test("the share is of the subtree that is shown", () => {
    const matches = matchText(SMALL.functions, "read")!;
    expect(matched(SMALL, find(SMALL, "write"), matches)).toEqual({ nodes: 0, total: 0 });
    expect(matched(SMALL, find(SMALL, "parse"), matches)).toEqual({ nodes: 1, total: 30 });
  });

  test("an empty text is no search; a selected name matches whole names only", () => {
    expect(matchText(SMALL.functions, "  ")).toBeNull();
    const tree = treeOf("read;reader 1");
    expect([...matchName(tree.functions, "read")!]).toEqual([1, 0]);
  });
});

describe("table", () => {
  test("a recursive function's total counts once, its self every time", () => {
    const tree = treeOf("f;g;f;f 10", "f 5", "g 1");
    const totals = totalsByFunction(tree, ROOT);
    const f = tree.functions.name.indexOf("f");
    expect([totals.self[f], totals.total[f]]).toEqual([15, 15]);
    expect(totals.total[tree.functions.name.indexOf("g")]).toBe(11);
  });

  test("self times add up to the root's total", () => {
    const { self } = totalsByFunction(SMALL, ROOT);
    expect(self.reduce((a, b) => a + b)).toBe(SMALL.total[ROOT]);
  });

  test("under a zoomed frame only its subtree counts", () => {
    const totals = totalsByFunction(SMALL, find(SMALL, "parse"));
    expect(Array.from(totals.functions, (f) => SMALL.functions.name[f]).sort()).toEqual(["parse", "read"]);
  });

  test("sorts by each column in both directions, ties by name", () => {
    const tree = treeOf("b 5", "a 5", "c 9");
    const totals = totalsByFunction(tree, ROOT);
    const names = (...args: ["name" | "self" | "total", boolean]) =>
      Array.from(sortedFunctions(totals, tree.functions.name, ...args, null), (f) => tree.functions.name[f]).join("");
    expect(names("self", false)).toBe("cab");
    expect(names("total", true)).toBe("abc");
    expect(names("name", true)).toBe("abc");
    expect(names("name", false)).toBe("cba");
  });
});

describe("fold", () => {
  const tree = treeOf("app!main;py!eval;app!work;libc!read 30", "app!main;py!call;app!work 10", "py!eval 5");

  test("hidden frames give their time and their callees to their callers", () => {
    const hidden = hiddenFunctions(groupFunctions(tree, "binary"), tree.functions, { ...DEFAULT_VIEW, hide: ["py"] })!;
    const folded = foldFunctions(tree, hidden);
    expect(stacksOf(folded)).toEqual([" 5", "main;work 10", "main;work;read 30"]);
    expect(folded.total[ROOT]).toBe(tree.total[ROOT]);
    expect(folded.total[find(folded, "work")]).toBe(40);
  });

  test("keeping only one group hides all others", () => {
    const hidden = hiddenFunctions(groupFunctions(tree, "binary"), tree.functions, { ...DEFAULT_VIEW, only: "libc" })!;
    expect(stacksOf(foldFunctions(tree, hidden))).toEqual([" 15", "read 30"]);
  });

  test("internal functions, as the server marks them, are folded with the view's fold only", () => {
    const json = jsonOf("python3.11!_start;libpython3.11.so.1.0!eval;script!step;libcuda.so.1!cuLaunchKernel;libz.so.1!inflate 30");
    json.functions.internal = [1, 1, 0, 1, 0];
    const marked = parseProfile(json).tree;
    const groups = groupFunctions(marked, "binary");
    const hidden = hiddenFunctions(groups, marked.functions, { ...DEFAULT_VIEW, fold: true })!;
    expect(stacksOf(foldFunctions(marked, hidden))).toEqual(["step;inflate 30"]);
    expect(hiddenFunctions(groups, marked.functions, { ...DEFAULT_VIEW, fold: false })).toBeNull();
  });

  test("a single interval is kept; merged ones are unknown", () => {
    const json = jsonOf("a;x;k 30", "a;y;k 10", "a;y;m 5");
    json.nodes.interval = json.nodes.total.map((_, i) => i);
    const whole = parseProfile(json).tree;
    const folded = foldFunctions(whole, matchName(whole.functions, "y")!);
    const of = (tree: typeof whole, name: string) => tree.interval![find(tree, name)];
    expect(of(folded, "m")).toBe(of(whole, "m"));
    expect(of(folded, "k")).toBe(of(whole, "k"));
    const both = foldFunctions(whole, Uint8Array.from(whole.functions.name, (name) => Number(name === "x" || name === "y")));
    expect(of(both, "k")).toBeNaN();
    expect(of(both, "a")).toBe(of(whole, "a"));
  });

  test("hiding nothing changes nothing", () => {
    expect(hiddenFunctions(groupFunctions(tree, "binary"), tree.functions, DEFAULT_VIEW)).toBeNull();
    const folded = foldFunctions(tree, new Uint8Array(tree.functions.count));
    expect(folded.total).toEqual(tree.total);
    expect(folded.function).toEqual(tree.function);
  });

  test("time of frames that the server left out stays in totals", () => {
    const json = jsonOf("app!main;py!eval;app!work 30", "app!main 10");
    // 7 ns under work were below min_total.
    for (let i = 0; i < json.nodes.total.length; i++) json.nodes.total[i]! += 7;
    const cut = parseProfile(json).tree;
    const folded = foldFunctions(cut, hiddenFunctions(groupFunctions(cut, "binary"), cut.functions, { ...DEFAULT_VIEW, hide: ["py"] })!);
    expect(folded.total[find(folded, "work")]).toBe(37);
    expect(folded.total[ROOT]).toBe(47);
  });
});

describe("walk", () => {
  const tree = treeOf("main;a 50", "main;tiny 1", "main;b 40", "idle 9");
  const layout = layoutTree(tree);
  const whole = { from: 0, to: 100 };
  const go = (name: string, ...steps: Parameters<typeof walk>[3][]) =>
    nodeName(tree, steps.reduce((node, step) => walk(tree, layout, node, step, whole, 2), find(tree, name)));

  test("goes to the caller and to the largest callee, and stays at the ends", () => {
    expect(go("a", "caller")).toBe("main");
    expect(go("a", "caller", "caller", "caller")).toBe("all");
    expect(go("main", "callee")).toBe("a");
    expect(go("a", "callee")).toBe("a");
  });

  test("skips invisible frames, and stays if there is no neighbour", () => {
    expect(go("a", "right")).toBe("b");
    expect(go("b", "right")).toBe("b");
    expect(go("b", "left")).toBe("a");
  });

  test("never leaves the zoomed frame", () => {
    const span = spanOf(layout, find(tree, "main"));
    expect(walk(tree, layout, find(tree, "main"), "right", span, 0)).toBe(find(tree, "main"));
  });
});
