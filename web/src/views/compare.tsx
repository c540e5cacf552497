// SPDX-License-Identifier: Apache-2.0
import type { Ref } from "preact";
import { useMemo } from "preact/hooks";
import type { CompareJson, Process } from "../api/types";
import { differenceFills, shadeOfChange, type Comparison } from "../flamegraph/difference";
import { layoutTree } from "../flamegraph/layout";
import { findPath, pathHash, ROOT } from "../flamegraph/model";
import { DARK, LIGHT } from "../flamegraph/palette";
import { matchText } from "../flamegraph/search";
import { formatCount, formatDuration, formatRange, formatRangeUtc, threeDigits, unbroken } from "../format";
import type { Navigation } from "../state/use-view";
import { isSameSide, swapped, timeBefore, type Base, type Range, type View } from "../state/view";
import { ComparedTable } from "./compared-table";
import { FlameGraph } from "./flame-graph";
import { FrameSearch } from "./frame-search";
import { titleOf } from "./process-picker";
import { Message } from "./states";

interface SidesProps {
  view: View;
  nav: Navigation;
  processes: Process[];
  available: Range;
  // The time of a side for which none is selected.
  window: Range;
}

// Both sides, and how to change them: B is the selection that every page has, A a selection that was kept.
export function CompareSides({ view, nav, processes, available, window }: SidesProps) {
  const { base, brush } = view;
  const before = brush && timeBefore(brush, available);
  const isAll = window.from === available.from;
  const keep = () => nav.step({ base: { time: brush, processes: view.processes }, zoom: null });
  return (
    <div class="sides" role="toolbar" aria-label="Sides of the comparison">
      {base && <Side letter="A" side={base} processes={processes} window={window} isAll={isAll} />}
      {base && <Side letter="B" side={{ time: brush, processes: view.processes }} processes={processes} window={window} isAll={isAll} />}
      {base && (
        <>
          <button type="button" class="plain" title="A becomes B, and B becomes A" onClick={() => nav.step(swapped(view))}>
            Swap
          </button>
          <button type="button" class="plain" disabled={isSameSide(view)} title="Keep the time and processes that are selected now as A" onClick={keep}>
            Use B as A
          </button>
        </>
      )}
      {!base && (
        <button type="button" class="plain" title="Keep the time and processes that are selected now, to compare others with them" onClick={keep}>
          Use this selection as A
        </button>
      )}
      {before && (
        <button type="button" class="plain" title={formatRange(before.from, before.to)} onClick={() => nav.step({ base: { time: before, processes: view.processes }, zoom: null })}>
          Compare with the time before
        </button>
      )}
      {base && (
        <button type="button" class="quiet" aria-label="End the comparison" title="Forget A" onClick={() => nav.step({ base: null, zoom: null })}>
          ✕
        </button>
      )}
    </div>
  );
}

interface SideProps {
  letter: string;
  side: Base;
  processes: Process[];
  window: Range;
  // Whether the window is all of the data's time.
  isAll: boolean;
}

function Side({ letter, side, processes, window, isAll }: SideProps) {
  const { from, to } = side.time ?? window;
  return (
    <span class={`chip side-${letter.toLowerCase()}`} title={`${formatRangeUtc(from, to)}\n${titleOf(side.processes, processes) || "all processes"}`}>
      <strong>{letter}</strong> <span class="figure">{side.time || !isAll ? `${formatRange(from, to)} ` : "all time "}</span>
      {(side.time || !isAll) && <span class="figure dim">{formatDuration((to - from) * 1000)}</span>}
      <span class="chip-text">{titleOf(side.processes, processes) || "all processes"}</span>
    </span>
  );
}

// What to do, until there are two sides.
export function NothingToCompare({ view }: { view: View }) {
  if (!view.base) {
    return (
      <Message title="Compare two times or two processes" kind="empty">
        <ol class="steps">
          <li>Select the one before: drag over a strip for its time, or choose processes above.</li>
          <li>Press “Use this selection as A”.</li>
          <li>Select the one after, B, in the same way.</li>
        </ol>
        <p>With a time selected, “Compare with the time before” takes one step. To compare two recordings, open both and choose their processes:</p>
        <pre>gpusonde view A.sonde B.sonde</pre>
      </Message>
    );
  }
  return (
    <Message title="A and B are the same" kind="empty">
      <p>A is kept. Now select B: drag over a strip for another time, or choose other processes above.</p>
    </Message>
  );
}

interface PageProps {
  comparison: Comparison;
  view: View;
  nav: Navigation;
  isDark: boolean;
  search: Ref<HTMLInputElement>;
}

const KINDS: Record<string, string> = { gpu: "GPU time", cpu: "CPU time", off_cpu: "waiting" };

// What differs: sentences, the flame graph of the difference, and the kernels by their change.
export function ComparePage({ comparison: { json, tree }, view, nav, isDark, search }: PageProps) {
  const layout = useMemo(() => layoutTree(tree), [tree]);
  const matches = useMemo(() => matchText(tree.functions, view.search), [tree, view.search]);
  const sought = useMemo(() => (view.zoom === null ? ROOT : findPath(tree, view.zoom)), [tree, view.zoom]);
  const zoom = sought !== null && tree.total[sought]! > 0 ? sought : ROOT;
  const theme = isDark ? DARK : LIGHT;
  const fills = useMemo(() => differenceFills(theme, isDark), [theme]);
  const fillOf = useMemo(() => Uint8Array.from(tree.sides!.a, (a, i) => shadeOfChange(a, tree.sides!.b[i]!)), [tree]);
  const flame = view.orientation === "flame";
  const picture = useMemo(() => ({ tree, layout, zoom, flame, fillOf, fills, theme, matches }), [tree, layout, zoom, flame, fillOf, fills, theme, matches]);
  const zoomTo = (node: number) => {
    const target = node === zoom && node !== ROOT ? tree.parent[node]! : node;
    nav.step({ zoom: target === ROOT ? null : pathHash(tree, target) });
  };
  const notes = [...(json.gpu?.a.notes ?? []), ...(json.gpu?.b.notes ?? [])];
  return (
    <main class="profile compare">
      <div class="findings">
        {json.why_not && <p>GPU work is not compared: {json.why_not}. Select a time in which kernels ran to compare them.</p>}
        {json.sentences.length > 0 && (
          <ul aria-label="What changed">
            {json.sentences.map((sentence) => (
              <li key={sentence}>{unbroken(sentence)}</li>
            ))}
          </ul>
        )}
        {notes.length > 0 && (
          <details class="poorer">
            <summary>What is missing ({formatCount(notes.length)})</summary>
            <ul>
              {notes.map((note) => (
                <li key={note}>{unbroken(note)}</li>
              ))}
            </ul>
          </details>
        )}
      </div>
      <div class="summary">
        <span class="figure">
          <strong>{formatDuration(tree.sides!.b[ROOT]!)}</strong> of {KINDS[json.type] ?? json.type} instead of {formatDuration(tree.sides!.a[ROOT]!)}{" "}
          <span class="dim">{basisOf(json)}</span>
        </span>
        <Scale />
        <FrameSearch input={search} view={view} nav={nav} />
      </div>
      {json.stacks.omitted > 0 && <p class="hint">{formatCount(json.stacks.omitted)} frames too small to see are left out. Their time is in their callers’.</p>}
      <div class="panes">
        {tree.total[ROOT]! > 0 ? (
          <FlameGraph picture={picture} estimate="" onZoom={zoomTo} />
        ) : (
          <Message title={`No ${KINDS[json.type] ?? json.type} on either side`} kind="empty">
            <p>Choose another kind of time above, or other sides.</p>
          </Message>
        )}
        {json.gpu && <ComparedTable compared={json.gpu} search={view.search} onSearch={(text) => nav.adjust({ search: text })} />}
      </div>
    </main>
  );
}

// What makes the sides comparable.
function basisOf({ by_work, divisor }: CompareJson): string {
  const how = by_work ? "for the same amount of work" : "for the same length of time";
  if (Math.abs(divisor - 1) < 0.0005) return how;
  return `${how}: B’s times are divided by ${threeDigits(divisor)}`;
}

function Scale() {
  return (
    <span class="difference-scale dim">
      <span class="swatch less" aria-hidden="true" /> less time in B <span class="swatch" aria-hidden="true" /> about equal{" "}
      <span class="swatch more" aria-hidden="true" /> more time in B; full colour from 40 % on
    </span>
  );
}
