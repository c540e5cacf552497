// SPDX-License-Identifier: Apache-2.0
import { useLayoutEffect, useMemo } from "preact/hooks";
import type { Overview } from "../api/types";
import { formatTime, formatShare, formatValue } from "../format";
import { printable } from "../printable";
import { hottestLine, TIMES, type Line, type SourceFile, type Time } from "../source/lines";
import { useRowsInSight } from "../state/use-rows";
import type { Navigation } from "../state/use-view";
import type { View } from "../state/view";

const ROW = 20;

const LABELS: Record<Time, [label: string, meaning: string]> = {
  cpu: ["CPU", "CPU time of the line and of its callees in other files"],
  gpu: ["GPU", "GPU time launched by the line or by its callees in other files"],
  waits: ["waiting", "Time that threads waited in the line or in its callees in other files"],
};

// The lines of a file, each with its time in the selection; opens at the line with the most.
export function SourcePage({ source, overview, view, nav }: { source: SourceFile; overview: Overview; view: View; nav: Navigation }) {
  const { scroller, first, last } = useRowsInSight(source.lines.length, ROW);
  const shown = TIMES.filter((time) => source.longest[time] > 0);
  const looked = view.type === "off_cpu" ? "waits" : view.type;
  const hottest = useMemo(() => hottestLine(source, looked), [source, looked]);

  useLayoutEffect(() => {
    const box = scroller.current!;
    box.scrollTop = Math.max(0, hottest * ROW - box.clientHeight / 3);
  }, [source.file]);

  const cells = (line: Line) => [
    ...shown.map((time) => (
      <td class="time" key={time} style={{ "--share": line.self[time] / source.longest[time] }} title={titleOf(line, time, source)}>
        {line.self[time] > 0 && <span>{formatValue(line.self[time], "ns")}</span>}
      </td>
    )),
    <td class="total" key="total">
      {line.total[looked] > 0 && formatValue(line.total[looked], "ns")}
    </td>,
  ];
  const row = (line: Line, index: number) => (
    <tr key={line.number} class={index === hottest ? "hottest" : ""} aria-rowindex={index + 2}>
      {cells(line)}
      <td class="number">{line.number || "?"}</td>
      <td class="code">{line.number === 0 ? <span class="dim">unknown line of this file</span> : printable(line.code ?? "")}</td>
    </tr>
  );
  const gap = (rows: number) => rows > 0 && <tr aria-hidden="true" style={{ height: `${rows * ROW}px` }} />;

  return (
    <main class="source">
      <div class="summary">
        <strong class="source-file">{printable(source.file)}</strong>
        {shown.length === 0 && <span class="dim">no line of this file has time in this selection</span>}
        <button type="button" class="plain" onClick={() => nav.step({ source: null })} title="Back to the profile (Esc)">
          Close
        </button>
      </div>
      {source.unreadable && (
        <p class="lost" role="status">
          {source.unreadable}.
        </p>
      )}
      {source.modifiedUs !== null && overview.to_us !== null && source.modifiedUs > overview.to_us && (
        <p class="lost" role="status">
          This file changed at {formatTime(source.modifiedUs)}, after it was profiled: times may be shown beside the wrong lines.
        </p>
      )}
      <div class="source-scroller" ref={scroller} tabIndex={0} role="region" aria-label="Lines">
        <table aria-rowcount={source.lines.length + 1}>
          <thead>
            <tr aria-rowindex={1}>
              {shown.map((time) => (
                <th scope="col" class="time" key={time} title={LABELS[time][1]}>
                  {LABELS[time][0]}
                </th>
              ))}
              <th scope="col" class="total" title={`${LABELS[looked][0]} time of the line and of all that it called`}>
                with calls
              </th>
              <th scope="col" class="number">
                line
              </th>
              <th scope="col" class="code" />
            </tr>
          </thead>
          <tbody>
            {gap(first)}
            {source.lines.slice(first, last).map((line, i) => row(line, first + i))}
            {gap(source.lines.length - last)}
          </tbody>
        </table>
      </div>
    </main>
  );
}

function titleOf(line: Line, time: Time, source: SourceFile): string {
  const share = (value: number) => `${formatValue(value, "ns")} (${formatShare(value, source.total[time])} of all in this selection)`;
  return line.total[time] === 0 ? "" : `${LABELS[time][0]}: ${share(line.self[time])}; with calls within this file ${share(line.total[time])}`;
}
