// SPDX-License-Identifier: Apache-2.0
import type { Navigation } from "../state/use-view";
import { OTHER_PROFILE, WAITS, type View, type Wait } from "../state/view";
import { Segments } from "./segments";

// What a wait is for, after "waits for".
export const WAIT_LABELS: Record<Wait, string> = { io: "I/O", lock: "a lock", condition: "another thread", run_queue: "a CPU", gpu_wait: "a GPU", sleep: "sleep" };

const WAIT_HINTS: Record<Wait, string> = {
  io: "Threads that waited for a disk or another device",
  lock: "Threads that waited for a lock that another thread held",
  condition: "Threads that waited until another thread notified them, released a semaphore or ended",
  run_queue: "Threads that were runnable, but had no CPU",
  gpu_wait: "Threads that waited for work on a GPU to end",
  sleep: "Threads that slept, or waited for an event, a timer or the network",
};

// Chooses the kind of time; for waits the kind of wait, and for CPU time whether only while the GPUs were idle.
// `hasGpus`: there is a device that can be idle.
export function TimeType({ view, nav, hasGpus }: { view: View; nav: Navigation; hasGpus: boolean }) {
  return (
    <div class="time-type" role="toolbar" aria-label="Time">
      <Segments
        label="Whose time"
        value={view.type}
        options={[
          ["cpu", "CPU time", "Stacks of running threads (G)"],
          ["gpu", "GPU time", "Kernels and copies under the code that launched them (G)"],
          ["off_cpu", "Waiting", "Waits of threads, under the code that waited (G)"],
        ]}
        onChoose={(type) => type !== view.type && nav.step({ type, ...OTHER_PROFILE })}
      />
      {view.type === "off_cpu" && (
        <Segments<Wait | "any">
          label="Waits for"
          value={view.wait ?? "any"}
          options={[["any", "anything", "All waits"], ...WAITS.map((wait): [Wait, string, string] => [wait, WAIT_LABELS[wait], WAIT_HINTS[wait]])]}
          onChoose={(wait) => nav.step({ wait: wait === "any" ? null : wait, zoom: null })}
        />
      )}
      {view.type === "cpu" && (hasGpus || view.idle) && (
        <button
          type="button"
          class="plain toggle"
          aria-pressed={view.idle}
          title="Only CPU time while no kernel, copy or set ran on the GPUs (W)"
          onClick={() => nav.step({ idle: !view.idle, zoom: null })}
        >
          while GPU idle
        </button>
      )}
    </div>
  );
}
