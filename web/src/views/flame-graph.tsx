// SPDX-License-Identifier: Apache-2.0
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { Chart, type Picture, type Pointed } from "../flamegraph/chart";
import { changeOf } from "../flamegraph/difference";
import { nodeName, ROOT, type Tree } from "../flamegraph/model";
import { formatInterval, formatShare, formatValue } from "../format";
import { FrameTooltip, originOf } from "./tooltip";

// The canvas with what surrounds it: tooltip, the spoken description of the focused frame, and a
// table of the largest frames for readers who do not see the canvas. `estimate` says what intervals come from.
export function FlameGraph({ picture, estimate, onZoom }: { picture: Picture; estimate: string; onZoom: (node: number) => void }) {
  const scroller = useRef<HTMLDivElement>(null);
  const spacer = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const chart = useRef<Chart | null>(null);
  const zoomTo = useRef(onZoom);
  zoomTo.current = onZoom;
  const [hovered, setHovered] = useState<Pointed | null>(null);
  const [focused, setFocused] = useState<Pointed | null>(null);

  useLayoutEffect(() => {
    const events = { onZoom: (node: number) => zoomTo.current(node), onHover: setHovered, onFocus: setFocused };
    chart.current = new Chart(scroller.current!, spacer.current!, canvas.current!, events);
    return () => chart.current!.destroy();
  }, []);
  useLayoutEffect(() => chart.current!.show(picture), [picture]);

  const { tree, zoom } = picture;
  // A tooltip may outlive its tree by one render.
  const pointed = [hovered, focused].find((p) => p && p.node < tree.count);
  return (
    <div class="flame">
      <div
        class="flame-scroller"
        ref={scroller}
        tabIndex={0}
        role="application"
        aria-label="Flame graph. Arrow keys walk the frames, Enter zooms, Escape zooms out."
        aria-describedby="flame-spoken"
      >
        <div ref={spacer} class="flame-spacer">
          <canvas ref={canvas} aria-hidden="true" />
        </div>
      </div>
      <div id="flame-spoken" class="unseen" aria-live="polite">
        {focused && focused.node < tree.count && describe(tree, focused.node)}
      </div>
      {pointed && <FrameTooltip tree={tree} zoom={zoom} pointed={pointed} estimate={estimate} />}
      <LargestFrames tree={tree} zoom={zoom} />
    </div>
  );
}

function describe(tree: Tree, node: number): string {
  const total = tree.total[node]!;
  if (tree.sides) {
    const [a, b] = [tree.sides.a[node]!, tree.sides.b[node]!];
    return `${nodeName(tree, node)}: ${formatValue(b, tree.unit)} in B, ${formatValue(a, tree.unit)} in A, ${changeOf(a, b)}, depth ${tree.depth[node]}`;
  }
  const interval = formatInterval(tree.interval?.[node] ?? 0, tree.unit);
  return (
    `${nodeName(tree, node)}, ${originOf(tree, node)}: ` +
    `total ${formatValue(total, tree.unit)}${interval && ` ${interval}`}, ` +
    `${formatShare(total, tree.total[ROOT]!)}, self ${formatValue(tree.self[node]!, tree.unit)}, depth ${tree.depth[node]}`
  );
}

// With more rows than this, walking the frames is easier for users of a screen reader.
const SPOKEN_FRAMES = 40;

function LargestFrames({ tree, zoom }: { tree: Tree; zoom: number }) {
  const shown: number[] = [];
  const least = tree.total[zoom]! / 50;
  for (let i = zoom; i < tree.end[zoom]! && shown.length < SPOKEN_FRAMES; ) {
    const large = tree.total[i]! >= least;
    if (large) shown.push(i);
    i = large ? i + 1 : tree.end[i]!;
  }
  return (
    <table class="unseen">
      <caption>Frames with at least 2 % of the time under {nodeName(tree, zoom)}</caption>
      <thead>
        <tr>
          <th>Depth</th>
          <th>Frame</th>
          <th>Self</th>
          <th>Total</th>
          <th>Share</th>
        </tr>
      </thead>
      <tbody>
        {shown.map((i) => (
          <tr key={i}>
            <td>{tree.depth[i]}</td>
            <td>{nodeName(tree, i)}</td>
            <td>{formatValue(tree.self[i]!, tree.unit)}</td>
            <td>{formatValue(tree.total[i]!, tree.unit)}</td>
            <td>{formatShare(tree.total[i]!, tree.total[ROOT]!)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
