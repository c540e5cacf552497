// SPDX-License-Identifier: Apache-2.0
import { firstBeyond, type Layout, type Span } from "./layout";
import { nodeName, type Tree } from "./model";
import type { Theme } from "./palette";

// What a frame of the canvas shows. Lengths are CSS pixels, `ratio` of them make a device pixel.
export interface Scene {
  tree: Tree;
  layout: Layout;
  // Which part of x fills the width.
  span: Span;
  // Callers of the zoomed frame are in rows above this one and are drawn faded.
  zoomRow: number;
  // Where the zoomed frame's middle lies: says which frame of a caller's row is the caller.
  zoomX: number;
  flame: boolean;
  // Function to index into fills.
  fillOf: Uint8Array;
  fills: string[];
  theme: Theme;
  // Functions that a search means; null when nothing is searched.
  matches: Uint8Array | null;
  hovered: number | null;
  focused: number | null;
}

export interface Viewport {
  width: number;
  height: number;
  // Of the top edge, in the whole graph.
  scroll: number;
  ratio: number;
}

export const ROW_HEIGHT = 18;
// A label of fewer pixels would be an ellipsis at best.
const LABEL_MIN_WIDTH = 24;
const LABEL_PADDING = 4;
export const LABEL_FONT = "12px system-ui, -apple-system, 'Segoe UI', Roboto, 'Liberation Sans', sans-serif";

// The y of a row's top edge in a viewport.
export function rowTop(row: number, rows: number, flame: boolean, viewport: Viewport): number {
  const height = rows * ROW_HEIGHT;
  // A flame graph stands on the floor when it is lower than the viewport.
  const floor = Math.max(height, viewport.height);
  const top = flame ? floor - (row + 1) * ROW_HEIGHT : row * ROW_HEIGHT;
  return top - viewport.scroll;
}

// The row at a y of the viewport; may lie outside the graph.
export function rowAt(y: number, rows: number, flame: boolean, viewport: Viewport): number {
  const inside = y + viewport.scroll;
  const floor = Math.max(rows * ROW_HEIGHT, viewport.height);
  return Math.floor((flame ? floor - inside : inside) / ROW_HEIGHT);
}

// Rectangles by fill, three numbers each (x, y, width), in device pixels: setting the fill once per
// colour instead of once per frame is most of the difference between 3 ms and 12 ms.
const buckets: number[][] = [];

// Draws the whole viewport. Costs O(rows x pixels x log frames) whatever the size of the tree:
// frames thinner than a device pixel share one, and a binary search finds the next that does not.
export function draw(context: CanvasRenderingContext2D, scene: Scene, viewport: Viewport): void {
  const { tree, layout, span, theme, flame, fills } = scene;
  const { ratio } = viewport;
  const pixels = Math.round(viewport.width * ratio);
  const scale = pixels / (span.to - span.from);
  const faded = fills.length - 1;
  while (buckets.length < fills.length) buckets.push([]);
  const labels: number[] = [];

  const isMatch = (node: number) => {
    const fn = tree.function[node]!;
    return fn >= 0 && scene.matches![fn] === 1;
  };
  const fillOf = (node: number, row: number) => {
    const fn = tree.function[node]!;
    if (fn < 0 || row < scene.zoomRow || (scene.matches && !scene.matches[fn])) return faded;
    return scene.fillOf[fn]!;
  };

  for (let row = 0; row < tree.rows; row++) {
    const top = rowTop(row, tree.rows, flame, viewport);
    if (top <= -ROW_HEIGHT || top >= viewport.height) continue;
    const y = Math.round(top * ratio);
    const end = layout.rowStart[row + 1]!;
    const caller = row < scene.zoomRow;
    let k = firstBeyond(layout.right, layout.rowStart[row]!, end, caller ? scene.zoomX : span.from);
    while (k < end && layout.left[k]! < span.to) {
      const x0 = Math.max(0, Math.round((layout.left[k]! - span.from) * scale));
      const x1 = Math.min(pixels, Math.round((layout.right[k]! - span.from) * scale));
      const node = layout.nodes[k]!;
      if (x1 > x0) {
        // One pixel of background parts frames that can spare it.
        const width = x1 - x0 > 3 ? x1 - x0 - 1 : x1 - x0;
        push(buckets[fillOf(node, row)]!, x0, y, width);
        if (width >= LABEL_MIN_WIDTH * ratio) labels.push(node, x0, y, width);
        k++;
      } else {
        // This frame rounds to nothing: one pixel stands for it and all that end inside that pixel.
        const next = firstBeyond(layout.right, k + 1, end, span.from + (x0 + 0.5) / scale);
        let shown = node;
        if (scene.matches) for (let m = k; m < next; m++) if (isMatch(layout.nodes[m]!)) shown = layout.nodes[m]!;
        const covered = (layout.right[next - 1]! - layout.left[k]!) * scale;
        if (covered >= MIN_COVERED && x0 < pixels) push(buckets[fillOf(shown, row)]!, x0, y, 1);
        k = next;
      }
      if (caller) break;
    }
  }

  context.setTransform(1, 0, 0, 1, 0, 0);
  context.fillStyle = theme.background;
  context.fillRect(0, 0, pixels, Math.round(viewport.height * ratio));
  const height = Math.round(ROW_HEIGHT * ratio) - 1;
  for (let f = 0; f < fills.length; f++) {
    const bucket = buckets[f]!;
    if (bucket.length === 0) continue;
    context.fillStyle = fills[f]!;
    for (let i = 0; i < bucket.length; i += 3) context.fillRect(bucket[i]!, bucket[i + 1]!, bucket[i + 2]!, height);
    bucket.length = 0;
  }
  drawLabels(context, scene, labels, ratio, (node, row) => fillOf(node, row) === faded);
  outline(context, scene, viewport, scale, scene.hovered, 1);
  outline(context, scene, viewport, scale, scene.focused, 2);
}

// Less than a fifth of a pixel of frames is dust: drawn full, it would look like five times as much.
const MIN_COVERED = 0.2;

// Neighbouring slivers of one colour become one rectangle.
function push(bucket: number[], x: number, y: number, width: number): void {
  const n = bucket.length;
  if (width === 1 && n > 0 && bucket[n - 2] === y && bucket[n - 3]! + bucket[n - 1]! === x) bucket[n - 1]!++;
  else bucket.push(x, y, width);
}

function drawLabels(
  context: CanvasRenderingContext2D,
  scene: Scene,
  labels: number[],
  ratio: number,
  isFaded: (node: number, row: number) => boolean,
): void {
  const { tree, theme } = scene;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.font = LABEL_FONT;
  context.textBaseline = "middle";
  for (const pass of [false, true]) {
    context.fillStyle = pass ? theme.fadedLabel : theme.label;
    for (let i = 0; i < labels.length; i += 4) {
      const node = labels[i]!;
      if (isFaded(node, tree.depth[node]!) !== pass) continue;
      const room = labels[i + 3]! / ratio - 2 * LABEL_PADDING;
      const text = fitText(context, nodeName(tree, node), room);
      if (text) context.fillText(text, labels[i + 1]! / ratio + LABEL_PADDING, labels[i + 2]! / ratio + ROW_HEIGHT / 2);
    }
  }
}

// Widths of characters are measured once: measureText per label and frame costs more than drawing.
const advances = new Map<string, number>();

function advance(context: CanvasRenderingContext2D, character: string): number {
  let width = advances.get(character);
  if (width === undefined) {
    width = context.measureText(character).width;
    advances.set(character, width);
  }
  return width;
}

// As much of the text as has room, with an ellipsis when cut; nothing if not even two characters fit.
function fitText(context: CanvasRenderingContext2D, text: string, room: number): string {
  const ellipsis = advance(context, "…");
  let width = 0;
  let kept = 0;
  for (let i = 0; i < text.length; i++) {
    width += advance(context, text[i]!);
    if (width + ellipsis <= room) kept = i + 1;
    else if (width > room) return kept >= 2 ? `${text.slice(0, kept)}…` : "";
  }
  return text;
}

function outline(
  context: CanvasRenderingContext2D,
  { tree, layout, span, flame, theme, zoomRow }: Scene,
  viewport: Viewport,
  scale: number,
  node: number | null,
  lineWidth: number,
): void {
  if (node === null) return;
  const k = layout.slot[node]!;
  const row = tree.depth[node]!;
  if (layout.right[k]! < span.from || layout.left[k]! > span.to) return;
  const toX = (x: number) => ((x - span.from) * scale) / viewport.ratio;
  const x0 = row < zoomRow ? 0 : Math.max(0, toX(layout.left[k]!));
  const x1 = row < zoomRow ? viewport.width : Math.min(viewport.width, toX(layout.right[k]!));
  const y = rowTop(row, tree.rows, flame, viewport);
  const inset = lineWidth / 2;
  context.strokeStyle = theme.outline;
  context.lineWidth = lineWidth;
  context.strokeRect(x0 + inset, y + inset, Math.max(1, x1 - x0 - 1 - lineWidth), ROW_HEIGHT - 1 - lineWidth);
}
