// SPDX-License-Identifier: Apache-2.0
import type { HostUse } from "../api/types";

// What the list of hosts is sorted by: problems first, or a column.
export type HostOrder = "problem" | "name" | "seen" | "gpus" | "busy" | "idle" | "incidents" | "stored";

export function hasProblem(host: HostUse): boolean {
  return host.silent || host.error !== "" || (host.incidents ?? 0) > 0;
}

// Each compares by what is looked for first: silence, incidents, waste, little use; unknown figures come last.
const ORDERS: Record<HostOrder, (a: HostUse, b: HostUse) => number> = {
  problem: (a, b) => Number(b.silent) - Number(a.silent) || Number(b.error !== "") - Number(a.error !== "") || falling(a.incidents, b.incidents),
  name: () => 0,
  seen: (a, b) => a.last_seen_us - b.last_seen_us,
  gpus: (a, b) => falling(a.gpus, b.gpus),
  busy: (a, b) => rising(a.busy, b.busy),
  idle: (a, b) => falling(a.idle_ns, b.idle_ns),
  incidents: (a, b) => falling(a.incidents, b.incidents),
  stored: (a, b) => falling(a.bytes, b.bytes),
};

// Hosts whose names contain the text, sorted; equal ones by name, with numbers in names as numbers.
export function orderHosts(hosts: HostUse[], order: HostOrder, filter: string): HostUse[] {
  const text = filter.trim().toLowerCase();
  return hosts
    .filter(({ name }) => name.toLowerCase().includes(text))
    .sort((a, b) => ORDERS[order](a, b) || a.name.localeCompare(b.name, "en", { numeric: true }));
}

function falling(a: number | null, b: number | null): number {
  return (b ?? -1) - (a ?? -1);
}

function rising(a: number | null, b: number | null): number {
  return (a ?? Infinity) === (b ?? Infinity) ? 0 : (a ?? Infinity) - (b ?? Infinity);
}
