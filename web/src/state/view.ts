// SPDX-License-Identifier: Apache-2.0
import { USAGE_BY, type Selection, type UsageBy } from "../api/types";
import { isKey } from "../timeline/pick";

// Everything that determines the page's content: stored in the query string, so that Back works and every view can be
// linked.
export interface View {
  // The host whose data is shown; null for the only one, or before one of several is chosen.
  host: string | null;
  page: (typeof PAGES)[number];
  // The time that the strips cover: the last so many seconds, or all; null is the default (lastOf).
  last: number | "all" | null;
  // The brush in it, microseconds since the epoch, half-open; null without a brush.
  brush: Range | null;
  // What the selection is compared with; null until it is chosen.
  base: Base | null;
  // Whether the strips of the devices' state (clocks, power, memory, …) are shown.
  metrics: boolean;
  type: ProfileType;
  // Only waits of this kind.
  wait: Wait | null;
  // Only CPU time while the devices were idle.
  idle: boolean;
  // Ids of the processes that are shown; empty for all.
  processes: string[];
  tid: number | null;
  device: string | null;
  stream: number | null;
  filter: string;
  orientation: "icicle" | "flame";
  colour: "binary" | "kind";
  // Whether internal frames (interpreter, start-up code, CUDA's libraries) are folded into their callers.
  fold: boolean;
  // Whether the threads that profilers run inside programs are shown.
  helpers: boolean;
  // Legend names whose frames are folded into their callers, or the only one that is kept.
  hide: string[];
  only: string | null;
  // Path hash of the frame that fills the width (model.ts, pathHash).
  zoom: string | null;
  search: string;
  // The function selected in the table.
  pick: string | null;
  // The source file shown instead of the profile.
  source: string | null;
  sort: SortKey;
  ascending: boolean;
  // Devices, processes and threads ("process.tid") whose tracks the timeline doesn't show.
  closed: string[];
  // The slice whose details the timeline shows (timeline/pick.ts).
  slice: string | null;
  // What GPU time is summed by, and what a GPU costs for an hour.
  by: UsageBy;
  price: number | null;
}

const PAGES = ["profile", "timeline", "compare", "incidents", "usage"] as const;

// The kind of time: CPU time, GPU time under the code that launched it, or off-CPU time.
export type ProfileType = (typeof PROFILE_TYPES)[number];
export const PROFILE_TYPES = ["cpu", "gpu", "off_cpu"] as const;

// What threads wait for.
export type Wait = (typeof WAITS)[number];
export const WAITS = ["io", "lock", "condition", "run_queue", "gpu_wait", "sleep"] as const;

export interface Range {
  from: number;
  to: number;
}

// Side A of a comparison.
export interface Base {
  // Null for all time.
  time: Range | null;
  // Empty for all.
  processes: string[];
}

export type SortKey = "name" | "self" | "total";

export const DEFAULT_VIEW: View = {
  host: null,
  page: "profile",
  last: null,
  brush: null,
  base: null,
  metrics: false,
  type: "cpu",
  wait: null,
  idle: false,
  processes: [],
  tid: null,
  device: null,
  stream: null,
  filter: "",
  orientation: "icicle",
  colour: "binary",
  fold: true,
  helpers: false,
  hide: [],
  only: null,
  zoom: null,
  search: "",
  pick: null,
  source: null,
  sort: "self",
  ascending: false,
  closed: [],
  slice: null,
  by: "owner",
  price: null,
};

// Users may edit the query string: invalid values count as absent. `opensOn` is the profile type if the address has
// none: GPU time if there is GPU work.
export function parseView(query: string, opensOn: ProfileType = DEFAULT_VIEW.type): View {
  const params = new URLSearchParams(query);
  const from = integer(params.get("from_us"));
  const to = integer(params.get("to_us"));
  const implied = params.get("while_gpu_idle") === "1" ? "cpu" : opensOn;
  const type = PROFILE_TYPES.find((known) => known === params.get("type")) ?? implied;
  const processes = ids(params.get("process"));
  const device = id(params.get("device"));
  const sort = params.get("sort") ?? "";
  const key = sort.replace(/^-/, "");
  const sortKey = key === "name" || key === "self" || key === "total" ? key : DEFAULT_VIEW.sort;
  return {
    host: params.get("host") || null,
    page: PAGES.find((known) => known === params.get("page")) ?? "profile",
    last: params.get("last") === "all" ? "all" : integer(params.get("last")) || null,
    brush: from !== null && to !== null && from < to ? { from, to } : null,
    base: parseBase(params),
    metrics: params.get("metrics") === "1",
    type,
    wait: type === "off_cpu" ? (WAITS.find((known) => known === params.get("wait")) ?? null) : null,
    // An idle GPU has no GPU time, and waits can't be filtered by GPU activity.
    idle: type === "cpu" && params.get("while_gpu_idle") === "1",
    processes,
    tid: processes.length === 1 ? integer(params.get("tid")) : null,
    device,
    stream: device ? integer(params.get("stream")) : null,
    filter: params.get("filter") ?? "",
    orientation: params.get("graph") === "flame" ? "flame" : "icicle",
    colour: params.get("colour") === "kind" ? "kind" : "binary",
    fold: params.get("fold") !== "none",
    helpers: params.get("threads") === "all",
    hide: params.getAll("hide"),
    only: params.get("only"),
    zoom: params.get("zoom"),
    search: params.get("search") ?? "",
    pick: params.get("pick"),
    source: params.get("source"),
    sort: sortKey,
    ascending: key === sortKey ? !sort.startsWith("-") : DEFAULT_VIEW.ascending,
    closed: params.getAll("closed").filter((key) => /^[0-9a-f]{32}(\.\d+)?$/.test(key)),
    slice: params.getAll("slice").find(isKey) ?? null,
    by: usageBy(params.get("by") ?? "") ?? DEFAULT_VIEW.by,
    price: price(params.get("price")),
  };
}

function parseBase(params: URLSearchParams): Base | null {
  const process = params.get("base_process");
  if (process === null) return null;
  const processes = process === "all" ? [] : ids(process);
  if (process !== "all" && processes.length === 0) return null;
  const from = integer(params.get("base_from_us"));
  const to = integer(params.get("base_to_us"));
  return { time: from !== null && to !== null && from < to ? { from, to } : null, processes };
}

// Null for a text that is none.
export function usageBy(text: string): UsageBy | null {
  if (text.startsWith("label:") && text.length > 6) return text as UsageBy;
  return USAGE_BY.find((known) => known === text) ?? null;
}

// The inverse of parseView; leaves out defaults, so that a plain view has a plain address.
export function formatView(view: View, opensOn: ProfileType = DEFAULT_VIEW.type): string {
  const params = new URLSearchParams();
  if (view.host !== null) params.set("host", view.host);
  if (view.page !== "profile") params.set("page", view.page);
  if (view.last !== null) params.set("last", String(view.last));
  if (view.brush) {
    params.set("from_us", String(view.brush.from));
    params.set("to_us", String(view.brush.to));
  }
  if (view.base) {
    if (view.base.time) {
      params.set("base_from_us", String(view.base.time.from));
      params.set("base_to_us", String(view.base.time.to));
    }
    params.set("base_process", view.base.processes.join(",") || "all");
  }
  if (view.metrics) params.set("metrics", "1");
  if (view.type !== opensOn) params.set("type", view.type);
  if (view.type === "off_cpu" && view.wait) params.set("wait", view.wait);
  if (view.type === "cpu" && view.idle) params.set("while_gpu_idle", "1");
  if (view.processes.length > 0) params.set("process", view.processes.join(","));
  if (view.processes.length === 1 && view.tid !== null) params.set("tid", String(view.tid));
  if (view.device) params.set("device", view.device);
  if (view.device && view.stream !== null) params.set("stream", String(view.stream));
  if (view.filter) params.set("filter", view.filter);
  if (view.orientation !== "icicle") params.set("graph", view.orientation);
  if (view.colour !== "binary") params.set("colour", view.colour);
  if (!view.fold) params.set("fold", "none");
  if (view.helpers) params.set("threads", "all");
  for (const name of view.hide) params.append("hide", name);
  if (view.only !== null) params.set("only", view.only);
  if (view.zoom) params.set("zoom", view.zoom);
  if (view.search) params.set("search", view.search);
  if (view.pick !== null) params.set("pick", view.pick);
  if (view.source) params.set("source", view.source);
  if (view.sort !== DEFAULT_VIEW.sort || view.ascending !== DEFAULT_VIEW.ascending) {
    params.set("sort", (view.ascending ? "" : "-") + view.sort);
  }
  for (const key of view.closed) params.append("closed", key);
  if (view.slice !== null) params.set("slice", view.slice);
  if (view.by !== DEFAULT_VIEW.by) params.set("by", view.by);
  if (view.price !== null) params.set("price", String(view.price));
  const text = params.toString().replaceAll("%2C", ",");
  return text ? `?${text}` : "";
}

// A live page opens on its newest data: weeks of data would be read again and again.
export const LIVE_SECONDS = 900;

// The seconds that the strips cover; null for all. A recording is shown as a whole.
export function lastOf(view: View, live: boolean): number | null {
  if (view.last === "all") return null;
  return view.last ?? (live ? LIVE_SECONDS : null);
}

// The window that the strips cover, within the server's data; null without data.
export function windowOf(last: number | null, available: Range | null): Range | null {
  if (!available || last === null) return available;
  return { from: Math.max(available.from, available.to - last * 1e6), to: available.to };
}

// The agent sends rows to the store within seconds; a minute is on the safe side.
const SETTLED_US = 60e6;

// Whether a time range is old enough that no more rows are expected for it.
export function isSettled(range: Range | null, available: Range | null): boolean {
  return range !== null && available !== null && range.to < available.to - SETTLED_US;
}

// The selection without its time range, for the whole window.
export function stackSelection(view: View): Selection {
  return {
    ...processSelection(view),
    ...(view.processes.length === 1 && view.tid !== null && { tid: view.tid }),
    ...(view.device && { device: view.device }),
    ...(view.device && view.stream !== null && { stream: view.stream }),
    ...(view.filter && { filter: view.filter }),
    ...(view.type === "cpu" && view.idle && { while_gpu_idle: 1 }),
  };
}

export function processSelection({ processes }: View): Selection {
  return processes.length > 0 ? { process: processes.join(",") } : {};
}

// The parameters of side A, which always say its time: without them it would be that of side B.
export function baseSelection({ time, processes }: Base, available: Range): Record<string, string | number> {
  const { from, to } = time ?? available;
  return { base_from_us: from, base_to_us: to, base_process: processes.join(",") || "all" };
}

// Whether both sides are the same, so that there is nothing to compare.
export function isSameSide({ base, brush, processes }: View): boolean {
  return base !== null && base.time?.from === brush?.from && base.time?.to === brush?.to && base.processes.join() === processes.join();
}

// Side B becomes A, and the other way round.
export function swapped({ base, brush, processes }: View): Partial<View> {
  if (!base) return {};
  return { base: { time: brush, processes }, brush: base.time, processes: base.processes, tid: null, zoom: null };
}

// As long a time right before the range; null if the data begins later.
export function timeBefore({ from, to }: Range, available: Range): Range | null {
  const begin = Math.max(available.from, from - (to - from));
  return begin < from ? { from: begin, to: from } : null;
}

export function timeSelection(range: Range | null): Selection {
  return range ? { from_us: range.from, to_us: range.to } : {};
}

// Resets choices that refer to frames of another profile.
export const OTHER_PROFILE: Partial<View> = { zoom: null, pick: null, hide: [], only: null };

// As many as the API takes.
export const MAX_PROCESSES = 100;

// Ids with commas between them, each once; empty if any of them is none.
function ids(text: string | null): string[] {
  const parts = [...new Set(text?.split(","))];
  return parts.length <= MAX_PROCESSES && parts.every(id) ? parts : [];
}

function id(text: string | null): string | null {
  return text && /^[0-9a-f]{32}$/.test(text) ? text : null;
}

export function price(text: string | null): number | null {
  return text !== null && /^\d+(\.\d+)?$/.test(text) ? Number(text) : null;
}

function integer(text: string | null): number | null {
  if (text === null || !/^\d+$/.test(text)) return null;
  const value = Number(text);
  return Number.isSafeInteger(value) ? value : null;
}
