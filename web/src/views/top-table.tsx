// SPDX-License-Identifier: Apache-2.0
import { useMemo, useState } from "preact/hooks";
import { binaryOf, type Tree } from "../flamegraph/model";
import { narrowLongNames } from "../flamegraph/names";
import { sortedFunctions, totalsByFunction } from "../flamegraph/table";
import { formatCount, formatShare, formatValue } from "../format";
import { printable } from "../printable";
import { SourceLink } from "./source-link";
import { isSourceFile } from "../source/lines";
import { useRowsInSight } from "../state/use-rows";
import type { Navigation } from "../state/use-view";
import type { SortKey, View } from "../state/view";

const ROW = 22;

interface Props {
  tree: Tree;
  zoom: number;
  view: View;
  nav: Navigation;
  // Functions that match the search; the table lists only those.
  matches: Uint8Array | null;
}

// Every function under the zoomed frame. Only visible rows are in the document, as a profile has tens of thousands of
// functions.
export function TopTable({ tree, zoom, view, nav, matches }: Props) {
  const { name, shown } = tree.functions;
  const narrow = useMemo(() => narrowLongNames(shown, ALWAYS_FITS), [tree.functions]);
  const totals = useMemo(() => totalsByFunction(tree, zoom), [tree, zoom]);
  const order = useMemo(
    () => sortedFunctions(totals, name, view.sort, view.ascending, matches),
    [totals, view.sort, view.ascending, matches],
  );
  const { scroller, first, last } = useRowsInSight(order.length, ROW);
  const whole = tree.total[zoom]!;
  // Bars behind the names show the sort column; the longest fills the column.
  const bars = view.sort === "total" ? totals.total : totals.self;
  const longest = useMemo(() => order.reduce((most, f) => Math.max(most, bars[f]!), 0) || 1, [order, bars]);

  // Tab leads to one row, and the arrow keys to the others: the row that had the focus last, else the picked or the first one.
  const [left, setLeft] = useState<string | null>(null);
  const inSight = order.subarray(first, last);
  const stop = [left, view.pick].map((wanted) => inSight.find((f) => name[f] === wanted)).find((f) => f !== undefined) ?? inSight[0];

  const row = (f: number, index: number) => {
    const picked = view.pick === name[f];
    const tabIndex = f === stop ? 0 : -1;
    const self = totals.self[f]!;
    const total = totals.total[f]!;
    const file = tree.functions.file[f]!;
    return (
      <tr key={f} class={picked ? "picked" : ""} aria-rowindex={index + 2} onFocusCapture={() => setLeft(name[f]!)} onClick={() => nav.step({ pick: picked ? null : name[f]! })}>
        <td class="name" style={{ "--share": bars[f]! / longest }}>
          <button type="button" tabIndex={tabIndex} aria-pressed={picked} title={`${printable(name[f]!)}\n${printable(binaryOf(tree.functions, f)?.name ?? "")}`}>
            {narrow[f]}
          </button>
          {isSourceFile(file) && <SourceLink file={file} nav={nav} tabIndex={tabIndex} />}
        </td>
        <td>{self === 0 ? "–" : formatValue(self, tree.unit)}</td>
        <td>
          {self === 0 ? "" : formatShare(self, whole)}
        </td>
        <td>{formatValue(total, tree.unit)}</td>
        <td>
          {formatShare(total, whole)}
        </td>
      </tr>
    );
  };

  return (
    <section class="top" aria-label="Functions">
      <div class="top-scroller" ref={scroller} onKeyDown={walkRows}>
        <table aria-rowcount={order.length + 1}>
          <thead>
            <tr aria-rowindex={1}>
              <SortHeader column="name" label={`${formatCount(order.length)} ${order.length === 1 ? "function" : "functions"}`} view={view} nav={nav} />
              <SortHeader column="self" label="self" view={view} nav={nav} span={2} />
              <SortHeader column="total" label="total" view={view} nav={nav} span={2} />
            </tr>
          </thead>
          <tbody>
            {first > 0 && <tr aria-hidden="true" style={{ height: `${first * ROW}px` }} />}
            {Array.from(inSight, (f, i) => row(f, first + i))}
            {last < order.length && <tr aria-hidden="true" style={{ height: `${(order.length - last) * ROW}px` }} />}
          </tbody>
        </table>
        {last < order.length && <p class="top-rest">and {formatCount(order.length - last)} more</p>}
        {order.length === 0 && <p class="top-none">No function{view.search && ` contains “${view.search}”`}.</p>}
      </div>
    </section>
  );
}

// Shorter names fit, however narrow the column is. Longer ones are often alike: kernels are instances of few templates,
// functions of C++ of few namespaces and classes.
const ALWAYS_FITS = 24;

function SortHeader({ column, label, view, nav, span }: { column: SortKey; label: string; view: View; nav: Navigation; span?: number }) {
  const active = view.sort === column;
  const direction = view.ascending ? "ascending" : "descending";
  // A first click sorts in the usual direction: names from A, times from the largest.
  const next = active ? !view.ascending : column === "name";
  return (
    <th scope="col" class={column} colSpan={span ?? 1} aria-sort={active ? direction : "none"}>
      <button type="button" onClick={() => nav.adjust({ sort: column, ascending: next })}>
        {label}
        <span class="sort-mark" aria-hidden="true">
          {active ? (view.ascending ? "▲" : "▼") : ""}
        </span>
      </button>
    </th>
  );
}

function walkRows(event: KeyboardEvent): void {
  if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
  const here = (event.target as HTMLElement).closest("tr");
  const next = event.key === "ArrowDown" ? here?.nextElementSibling : here?.previousElementSibling;
  const button = next?.querySelector("button");
  if (!button) return;
  event.preventDefault();
  button.focus();
}
