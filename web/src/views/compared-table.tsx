// SPDX-License-Identifier: Apache-2.0
import { useMemo } from "preact/hooks";
import type { CompareJson, ComparedLine } from "../api/types";
import { changeOf, signedShare } from "../flamegraph/difference";
import { narrowNames, shownNames } from "../flamegraph/names";
import { formatCount, formatDifference, formatDuration, threeDigits } from "../format";
import { printable } from "../printable";

const CHANGES: Record<ComparedLine["change"], string> = {
  none: "",
  slower: "slower",
  faster: "faster",
  more_launches: "more launches",
  fewer_launches: "fewer launches",
  only_in_a: "only in A",
  only_in_b: "only in B",
};

interface Props {
  compared: NonNullable<CompareJson["gpu"]>;
  search: string;
  onSearch: (text: string) => void;
}

// Kernels and annotated ranges, the largest difference of time first.
export function ComparedTable({ compared: { kernels, phases, omitted }, search, onSearch }: Props) {
  return (
    <section class="top compared" aria-label="What changed, by kernel">
      <div class="top-scroller">
        <Lines what="kernel" kind="gpu" lines={kernels} search={search} onSearch={onSearch} />
        {phases.length > 0 && <Lines what="range" kind="range" lines={phases} search={search} onSearch={onSearch} />}
        {omitted > 0 && <p class="top-none">{formatCount(omitted)} more with smaller differences are left out.</p>}
      </div>
    </section>
  );
}

interface LinesProps {
  what: string;
  // Of the names, as in a profile.
  kind: string;
  lines: ComparedLine[];
  search: string;
  onSearch: (text: string) => void;
}

function Lines({ what, kind, lines, search, onSearch }: LinesProps) {
  const shownAs = useMemo(() => namesInColumn(lines.map(({ name }) => name), kind), [lines]);
  const wanted = search.trim().toLowerCase();
  const shown = wanted === "" ? lines : lines.filter(({ name }) => name.toLowerCase().includes(wanted));
  return (
    <table>
      <thead>
        <tr>
          <th scope="col" class="name">
            {formatCount(shown.length)} {what}
            {shown.length === 1 ? "" : "s"}
          </th>
          <th scope="col" title="Time in B minus time in A">
            change
          </th>
          <th scope="col" title={what === "kernel" ? "Duration of a launch of equal shape, with its 95 % interval. Bold: not by chance (false discovery rate 5 %)" : "Duration of a range, with its 95 % interval. Bold: not by chance"}>
            each
          </th>
          <th scope="col">A</th>
          <th scope="col">B</th>
        </tr>
      </thead>
      <tbody>
        {shown.map((line) => (
          <tr key={line.name} onClick={() => onSearch(line.name === search ? "" : line.name)}>
            <td class="name">
              <button type="button" aria-pressed={line.name === search} title={`${printable(line.name)}\n${threeDigits(line.count_a)} times in A, ${threeDigits(line.count_b)} in B`}>
                {shownAs.get(line.name)}
              </button>
            </td>
            <td>
              {formatDifference(line.b_ns - line.a_ns, "ns")}
            </td>
            <Each line={line} />
            <td>{formatDuration(line.a_ns)}</td>
            <td>{formatDuration(line.b_ns)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

// The names as a narrow column shows them.
function namesInColumn(names: string[], kind: string): Map<string, string> {
  const narrow = narrowNames(shownNames(names, names.map(() => kind)));
  return new Map(names.map((name, i) => [name, narrow[i]!]));
}

function Each({ line: { change, duration, a_ns, b_ns } }: { line: ComparedLine }) {
  const known = change === "slower" || change === "faster" || change === "none" ? "" : CHANGES[change];
  if (!duration) return <td title="Too few launches to test, or communication, which depends on other ranks">{known || changeOf(a_ns, b_ns)}</td>;
  const interval = `95 % interval: ${signedShare(duration.low - 1)} to ${signedShare(duration.high - 1)}`;
  const verdict = duration.significant ? `${CHANGES[change] || "changed"}, not by chance` : "may be by chance, or too small to matter";
  return (
    <td title={`${interval}; ${verdict}`}>
      {known ? `${known} ` : ""}
      {duration.significant ? <strong>{signedShare(duration.ratio - 1)}</strong> : <span class="dim">{signedShare(duration.ratio - 1)}</span>}
    </td>
  );
}
