// SPDX-License-Identifier: Apache-2.0
import { usePlacement } from "../state/use-placement";
import type { Pointed } from "../flamegraph/chart";
import { binaryOf, nodeName, ROOT, type Tree } from "../flamegraph/model";
import { changeOf } from "../flamegraph/difference";
import { formatDifference, formatInterval, formatShare, formatValue } from "../format";
import { printable } from "../printable";

interface Props {
  tree: Tree;
  zoom: number;
  pointed: Pointed;
  // What intervals come from, in a sentence.
  estimate: string;
}

// What is known about one frame, beside the pointer and always inside the window.
export function FrameTooltip({ tree, zoom, pointed, estimate }: Props) {
  const { node } = pointed;
  const box = usePlacement(pointed, node);

  if (tree.sides) return <div class="tooltip" ref={box} role="tooltip"><Sides tree={tree} node={node} /></div>;
  const whole = tree.total[ROOT]!;
  const shown = tree.total[zoom]!;
  const row = (label: string, value: number, interval = "") => (
    <tr>
      <th scope="row">{label}</th>
      <td>
        {formatValue(value, tree.unit)}
        {interval && ` ${interval}`}
      </td>
      <td>{formatShare(value, whole)}</td>
      {zoom !== ROOT && <td>{formatShare(value, shown)}</td>}
    </tr>
  );
  return (
    <div class="tooltip" ref={box} role="tooltip">
      <div class="tooltip-name">{nodeName(tree, node)}</div>
      <div class="tooltip-origin">{originOf(tree, node)}</div>
      <table>
        <thead>
          <tr>
            <th />
            <th />
            <th>of all</th>
            {zoom !== ROOT && <th>of zoomed</th>}
          </tr>
        </thead>
        <tbody>
          {row("self", tree.self[node]!)}
          {row("total", tree.total[node]!, formatInterval(tree.interval?.[node] ?? 0, tree.unit))}
        </tbody>
      </table>
      {noteOn(tree, node, estimate).map((note) => (
        <div class="tooltip-note" key={note}>
          {note}
        </div>
      ))}
    </div>
  );
}

// What a frame of a difference took on either side.
function Sides({ tree, node }: { tree: Tree; node: number }) {
  const a = tree.sides!.a[node]!;
  const b = tree.sides!.b[node]!;
  return (
    <>
      <div class="tooltip-name">{nodeName(tree, node)}</div>
      <div class="tooltip-origin">
        {formatValue(b, tree.unit)} in B instead of {formatValue(a, tree.unit)} in A: {formatDifference(b - a, tree.unit)}, {changeOf(a, b)}
      </div>
      {MARKS[nodeName(tree, node)] && <div class="tooltip-note">{MARKS[nodeName(tree, node)]}</div>}
    </>
  );
}

// Frames that do not stand for a function.
const MARKS: Record<string, string> = {
  "[stack not sampled]": "No launch of these kernels was sampled: their time is exact, their launch stack is unknown.",
  "[graph launch]": "Launched as part of a CUDA graph. Its capture was not recorded, so this is shown under its launch.",
  "[captured in graph]": "Runs as part of a CUDA graph: this is the stack that captured it once, not the one that launches the graph.",
};

// What a number or a frame means, in sentences.
function noteOn(tree: Tree, node: number, estimate: string): string[] {
  const mark = node === ROOT ? undefined : MARKS[nodeName(tree, node)];
  const notes = mark ? [mark] : [];
  const interval = tree.interval?.[node] ?? 0;
  if (interval > 0) notes.push(`± is the 95 % interval: ${estimate}`);
  if (Number.isNaN(interval)) notes.push("Estimated; folding merged frames whose intervals don’t add up.");
  return notes;
}

// "train.py:88 · python3.11 · python", as far as known.
export function originOf(tree: Tree, node: number): string {
  if (node === ROOT) return "Everything in this selection";
  const { functions } = tree;
  const f = tree.function[node]!;
  const line = functions.line[f]!;
  const file = functions.file[f]! && functions.file[f]! + (line > 0 ? `:${line}` : "");
  return printable([file, binaryOf(functions, f)?.name, functions.kind[f]].filter(Boolean).join(" · "));
}
