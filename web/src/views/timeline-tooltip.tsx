// SPDX-License-Identifier: Apache-2.0
import { formatDuration, formatShare } from "../format";
import { usePlacement } from "../state/use-placement";
import type { Pointed } from "../timeline/chart";
import { describeSlice, type Description } from "../timeline/describe";
import type { Timeline, Track } from "../timeline/model";
import { formatMoment } from "../timeline/span";

interface Props {
  timeline: Timeline;
  track: Track;
  pointed: Pointed;
}

// What is known about one slice, beside the pointer.
export function SliceTooltip({ timeline, track, pointed }: Props) {
  const { slice } = pointed;
  const box = usePlacement(pointed, slice);
  const described = describeSlice(timeline, track, slice);
  return (
    <div class="tooltip" ref={box} role="tooltip">
      <div class="tooltip-name">{described.title}</div>
      <div class="tooltip-origin">{[described.kind, described.where].filter(Boolean).join(" · ")}</div>
      {described.most && <div class="tooltip-origin">most: {described.most}</div>}
      <table>
        <tbody>
          <SliceTimes described={described} moment={formatMoment(track.slices.start[slice]!, timeline.from_us, 1)} />
        </tbody>
      </table>
    </div>
  );
}

// When it began and how long it took, as rows of a table; of states each state's part.
export function SliceTimes({ described, moment }: { described: Description; moment: string }) {
  return (
    <>
      <tr>
        <th scope="row">start</th>
        <td>{moment}</td>
      </tr>
      <tr>
        <th scope="row">{described.parts.length > 0 ? "interval" : "duration"}</th>
        <td>{formatDuration(described.length)}</td>
      </tr>
      {described.parts.map(({ label, ns }) => (
        <tr key={label}>
          <th scope="row">{label}</th>
          <td>{formatDuration(ns)}</td>
          <td>{formatShare(ns, described.length)}</td>
        </tr>
      ))}
    </>
  );
}
