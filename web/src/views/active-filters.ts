// SPDX-License-Identifier: Apache-2.0
import { formatDuration, formatRange } from "../format";
import type { HostData } from "../state/use-host-data";
import { printable } from "../printable";
import { titleOf } from "./process-picker";
import type { Part } from "./states";
import { WAIT_LABELS } from "./time-type";

// The parts of the selection that leave something out, each with how to remove it.
export function activeFilters({ view, nav, last, overview, processes, devices }: HostData): Part[] {
  const { brush } = view;
  const device = devices.data?.devices.find((d) => d.device === view.device);
  const wait = view.type === "off_cpu" ? view.wait : null;
  const parts: (Part | false)[] = [
    brush !== null && { label: formatRange(brush.from, brush.to), clear: () => nav.step({ brush: null }) },
    last !== null && {
      label: `last ${formatDuration(last * 1e9)}`,
      clear: () => nav.step({ last: overview.data?.live ? "all" : null }),
    },
    view.processes.length > 0 && {
      label: `process ${titleOf(view.processes, processes.data?.processes ?? [])}`,
      clear: () => nav.step({ processes: [], tid: null }),
    },
    view.tid !== null && { label: `thread ${view.tid}`, clear: () => nav.step({ tid: null }) },
    view.device !== null && {
      label: device ? printable(device.label) : "device",
      clear: () => nav.step({ device: null, stream: null }),
    },
    view.stream !== null && { label: `stream ${view.stream}`, clear: () => nav.step({ stream: null }) },
    wait !== null && { label: `waits for ${WAIT_LABELS[wait]}`, clear: () => nav.step({ wait: null }) },
    view.idle && { label: "while GPU idle", clear: () => nav.step({ idle: false }) },
    view.filter !== "" && { label: `filter “${view.filter}”`, clear: () => nav.step({ filter: "" }) },
  ];
  return parts.filter((part) => part !== false);
}
