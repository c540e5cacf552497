// SPDX-License-Identifier: Apache-2.0
import type { Ref } from "preact";
import type { Match } from "../flamegraph/search";
import { formatCount, formatShare } from "../format";
import { printable } from "../printable";
import type { Navigation } from "../state/use-view";
import type { View } from "../state/view";
import { Segments } from "./segments";
import { SourceLink } from "./source-link";
import { FrameSearch } from "./frame-search";

interface Props {
  view: View;
  nav: Navigation;
  // The highlighted part of `shown`: by the table's selection if any, else by the search.
  match: Match | null;
  shown: number;
  zoomedName: string | null;
  // The source file of the selected function or the zoomed frame.
  file: string | null;
  search: Ref<HTMLInputElement>;
}

export function Toolbar({ view, nav, match, shown, zoomedName, file, search }: Props) {
  return (
    <div class="toolbar" role="toolbar" aria-label="Flame graph">
      <Segments
        label="Orientation"
        value={view.orientation}
        options={[
          ["icicle", "Icicle", "Callers above callees"],
          ["flame", "Flame", "Callers below callees"],
        ]}
        onChoose={(orientation) => nav.adjust({ orientation })}
      />
      <Segments
        label="Colour"
        value={view.colour}
        options={[
          ["binary", "by binary", "A colour for each program and library"],
          ["kind", "by kind", "A colour for native, OS kernel, Python, GPU"],
        ]}
        onChoose={(colour) => nav.step({ colour, hide: [], only: null })}
      />
      <button
        type="button"
        class="plain toggle"
        aria-pressed={view.fold}
        title="Fold the frames of the interpreter, of start-up code and of CUDA’s libraries into their callers (F)"
        onClick={() => nav.step({ fold: !view.fold })}
      >
        fold internals
      </button>
      <FrameSearch input={search} view={view} nav={nav} />
      <span class="matched figure" role="status">
        {match && (
          <>
            <strong>{formatShare(match.total, shown)}</strong> matched{" "}
            <span class="dim">
              in {formatCount(match.nodes)} {match.nodes === 1 ? "frame" : "frames"}
            </span>
          </>
        )}
      </span>
      {view.pick !== null && (
        <Chip text={printable(view.pick)} what="highlighted" onClear={() => nav.step({ pick: null })} />
      )}
      {file !== null && <SourceLink file={file} nav={nav} />}
      {zoomedName !== null && <Chip text={zoomedName} what="zoomed to" onClear={() => nav.step({ zoom: null })} />}
    </div>
  );
}

function Chip({ text, what, onClear }: { text: string; what: string; onClear: () => void }) {
  return (
    <span class="chip">
      <span class="dim">{what}</span>
      <span class="chip-text" title={text}>
        {text}
      </span>
      <button type="button" class="quiet" aria-label={`No longer ${what} ${text}`} title="Back (Esc)" onClick={onClear}>
        ✕
      </button>
    </span>
  );
}
