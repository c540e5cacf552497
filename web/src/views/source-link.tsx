// SPDX-License-Identifier: Apache-2.0
import type { Navigation } from "../state/use-view";

// Opens a source file at its hottest line.
export function SourceLink({ file, nav }: { file: string; nav: Navigation }) {
  return (
    <button
      type="button"
      class="source-link quiet"
      title={`Time by line of ${file} (S)`}
      onClick={(event) => {
        // The element below is clickable too.
        event.stopPropagation();
        nav.step({ source: file });
      }}
    >
      {file.slice(file.lastIndexOf("/") + 1)}
    </button>
  );
}
