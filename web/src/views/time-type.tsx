// SPDX-License-Identifier: Apache-2.0
import type { Navigation } from "../state/use-view";
import { OTHER_PROFILE, type View } from "../state/view";
import { Segments } from "./segments";

// Whose time the graph is of, and of CPU time whether only that in which the GPUs waited. `hasGpus`: there is
// a device that can be idle.
export function TimeType({ view, nav, hasGpus }: { view: View; nav: Navigation; hasGpus: boolean }) {
  return (
    <div class="time-type" role="toolbar" aria-label="Time">
      <Segments
        label="Whose time"
        value={view.type}
        options={[
          ["cpu", "CPU time", "Stacks of running threads (G)"],
          ["gpu", "GPU time", "Kernels and copies under the code that launched them (G)"],
        ]}
        onChoose={(type) => type !== view.type && nav.step({ type, ...OTHER_PROFILE })}
      />
      {view.type === "cpu" && (hasGpus || view.idle) && (
        <button
          type="button"
          class="plain toggle"
          aria-pressed={view.idle}
          title="Only CPU time in which no kernel, copy or set ran on the GPUs (W)"
          onClick={() => nav.step({ idle: !view.idle, zoom: null })}
        >
          while GPU idle
        </button>
      )}
    </div>
  );
}
