// SPDX-License-Identifier: Apache-2.0
import type { Mark } from "../api/types";
import { formatRange, formatTime } from "../format";
import type { Range } from "../state/view";

// Events of a device over its strip: XIDs as needles, slow-downs as bars along the top. A tooltip describes each; a
// hidden list is for screen readers.
export function Marks({ marks, window, label }: { marks: Mark[]; window: Range; label: string }) {
  if (marks.length === 0) return null;
  const length = Math.max(1, window.to - window.from);
  const at = (us: number) => `${(100 * (Math.min(Math.max(us, window.from), window.to) - window.from)) / length}%`;
  return (
    <div class="marks">
      <ul class="unseen" aria-label={`Events of ${label}`}>
        {marks.map((mark, i) => (
          <li key={i}>{describe(mark)}</li>
        ))}
      </ul>
      <div class="marks-area" aria-hidden="true">
        {marks.map((mark, i) => (
          <span
            key={i}
            class={`mark ${mark.kind}`}
            title={describe(mark)}
            style={mark.kind === "xid" ? { left: at(mark.from_us) } : { left: at(mark.from_us), right: `calc(100% - ${at(mark.to_us)})` }}
          />
        ))}
      </div>
    </div>
  );
}

function describe({ kind, from_us, to_us, text }: Mark): string {
  return `${kind === "xid" ? formatTime(from_us) : formatRange(from_us, to_us)}  ${text}`;
}
