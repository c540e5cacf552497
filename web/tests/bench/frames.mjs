// SPDX-License-Identifier: Apache-2.0

// Runs in the browser: measures the flame graph's steps on a tree of a given size.
import { Painter } from "../../src/flamegraph/draw.ts";
import { foldFunctions } from "../../src/flamegraph/fold.ts";
import { groupFunctions } from "../../src/flamegraph/groups.ts";
import { layoutTree, spanOf } from "../../src/flamegraph/layout.ts";
import { parseProfile } from "../../src/flamegraph/model.ts";
import { fillTable, LIGHT, packColour, SHADES, shadeOf } from "../../src/flamegraph/palette.ts";
import { matched, matchText } from "../../src/flamegraph/search.ts";
import { totalsByFunction } from "../../src/flamegraph/table.ts";
import { largeFlamegraph } from "../fixture-data.mjs";

const VIEWPORT = { width: 1440, height: 900, scroll: 0, ratio: 1 };
const DRAWS = 60;
const ZOOMS = 12;
const FRAMES_PER_ZOOM = 10;

function timed(run) {
  const start = performance.now();
  const result = run();
  return [performance.now() - start, result];
}

function quantiles(times) {
  const sorted = [...times].sort((a, b) => a - b);
  const at = (q) => Number(sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))].toFixed(2));
  return { min_ms: at(0), median_ms: at(0.5), p95_ms: at(0.95), max_ms: at(1), frames: times.length };
}

window.measure = (nodes) => {
  const text = JSON.stringify(largeFlamegraph(nodes));
  const [parse_ms, profile] = timed(() => parseProfile(JSON.parse(text)));
  const { tree } = profile;
  const [layout_ms, layout] = timed(() => layoutTree(tree));
  const [groups_ms, groups] = timed(() => groupFunctions(tree, "binary"));
  const [table_ms] = timed(() => totalsByFunction(tree, 0));
  const [search_ms, matches] = timed(() => {
    const found = matchText(tree.functions, "handle_7");
    matched(tree, 0, found);
    return found;
  });
  const hidden = Uint8Array.from(groups.ofFunction, (group) => Number(group === 0));
  const [fold_ms] = timed(() => foldFunctions(tree, hidden));

  const canvas = document.querySelector("canvas");
  canvas.width = VIEWPORT.width;
  canvas.height = VIEWPORT.height;
  const context = canvas.getContext("2d", { alpha: false });
  const painter = new Painter(context);
  const scene = {
    tree, layout, theme: LIGHT, fills: Uint32Array.from(fillTable(LIGHT), packColour), flame: false, hovered: null, focused: null,
    fillOf: Uint8Array.from(groups.ofFunction, (g, f) => groups.groups[g].slot * SHADES + shadeOf(tree.functions.name[f])),
  };
  // Reading a pixel back makes the browser rasterise what was only recorded: the time is the whole
  // cost of a frame, not that of calling the canvas.
  const frame = (span, zoom, found = null) =>
    timed(() => {
      painter.draw({ ...scene, span, zoomRow: tree.depth[zoom], zoomX: (span.from + span.to) / 2, matches: found }, VIEWPORT);
      context.getImageData(0, 0, 1, 1);
    })[0];

  const whole = spanOf(layout, 0);
  for (let i = 0; i < 10; i++) frame(whole, 0);
  const full = Array.from({ length: DRAWS }, () => frame(whole, 0));
  const searched = Array.from({ length: DRAWS }, () => frame(whole, 0, matches));

  // Zooms into frames of every size that can be clicked.
  const targets = [];
  for (let i = 1; i < tree.count && targets.length < ZOOMS; i++) {
    const share = tree.total[i] / tree.total[0];
    if (share < 0.4 / (targets.length + 1) && share > 0.003 && tree.end[i] - i > 100) targets.push(i);
  }
  const zooming = targets.flatMap((node) => {
    const to = spanOf(layout, node);
    return Array.from({ length: FRAMES_PER_ZOOM }, (_, i) => {
      const eased = 1 - (1 - (i + 1) / FRAMES_PER_ZOOM) ** 3;
      return frame({ from: to.from * eased, to: whole.to + (to.to - whole.to) * eased }, node);
    });
  });
  const round = (ms) => Number(ms.toFixed(1));
  return {
    nodes: tree.count,
    rows: tree.rows,
    full_view: quantiles(full),
    zoom_frames: quantiles(zooming),
    searched_view: quantiles(searched),
    prepare_ms: { parse: round(parse_ms), layout: round(layout_ms), groups: round(groups_ms), table: round(table_ms), search: round(search_ms), fold: round(fold_ms) },
  };
};
