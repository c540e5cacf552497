// SPDX-License-Identifier: Apache-2.0
import { printable } from "../printable";
import type { Navigation } from "../state/use-view";

// Opens a source file at its hottest line.
export function SourceLink({ file, nav, tabIndex }: { file: string; nav: Navigation; tabIndex?: number }) {
  return (
    <button
      type="button"
      tabIndex={tabIndex}
      class="source-link quiet"
      title={`Time by line of ${printable(file)} (S)`}
      onClick={(event) => {
        // The element below is clickable too.
        event.stopPropagation();
        nav.step({ source: file });
      }}
    >
      {printable(file.slice(file.lastIndexOf("/") + 1))}
    </button>
  );
}
