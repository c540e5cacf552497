// SPDX-License-Identifier: Apache-2.0

// The server's responses, as documented in docs/api.md. Times are microseconds since the Unix epoch (`_us`),
// durations nanoseconds (`_ns`). Other keys may appear and are ignored.

export interface Source {
  id: string;
  host: string;
  kind: string;
  hz: number | null;
}

// Who is signed in; an empty name: nobody.
export interface Session {
  needs_sign_in: boolean;
  name: string;
  scope: string;
}

export interface Drop {
  reason: string;
  meaning: string;
  // True if data is missing; false if it has less detail than it could have.
  lost: boolean;
  count: number;
}

export interface Overview {
  version: string;
  mode: "up" | "view" | "serve";
  live: boolean;
  // Live, but nothing has arrived for longer than an agent ever pauses.
  silent: boolean;
  title: string;
  simulated: boolean;
  // What CUDA programs must be started with to have their GPU work profiled; null where that isn't known.
  inject_library: string | null;
  from_us: number | null;
  to_us: number | null;
  cpus: number;
  sources: Source[];
  samples: number;
  kernels: number;
  drops: Drop[];
  notices: string[];
}

// A host that sends its data to `gpusonde serve`.
export interface HostUse {
  name: string;
  last_seen_us: number;
  // Nothing has come from it for longer than its agent ever pauses.
  silent: boolean;
  // In the last 15 minutes, busy as a share (0…1) of the time observed; null if nothing was.
  gpus: number | null;
  busy: number | null;
  // In the last 24 hours.
  incidents: number | null;
  // GPU time of the last 24 hours, held by anybody and of it idle, ns; null until it is summed.
  held_ns: number | null;
  idle_ns: number | null;
  bytes: number;
  error: string;
}

// An incident in the list of all hosts.
export interface HostIncident
  extends Pick<Incident, 'id' | 'name' | 'pid' | 'from_us' | 'to_us' | 'slowdown' | 'cause' | 'confidence' | 'sentence'> {
  host: string;
}

export interface Hosts {
  hosts: HostUse[];
  // Of all hosts together in the last 24 hours, the newest first.
  incidents: HostIncident[];
  // How many of that time are not among them.
  incidents_omitted: number;
  // Sentences about hosts whose rows are refused.
  notices: string[];
}

// The GPU time of a group of processes, ns.
export interface UsageSums {
  processes: number;
  devices: number;
  held_ns: number;
  // Busy, idle and unobserved together; a device that several hold counts once.
  accountable_ns: number;
  busy_ns: number;
  idle_ns: number;
  // Of the idle time, that in which a pod had GPUs allocated and no process held them.
  without_process_ns: number;
  unobserved_ns: number;
  // 0…1, with its 95 % interval if some of the time was not observed; null if nothing was.
  busy_share: { value: number; low: number; high: number } | null;
  // NVML's own figure, 0…1.
  sampled_utilization: number | null;
}

export interface UsageGroup extends UsageSums {
  // Empty: those that belong to none.
  name: string;
}

export interface Usage {
  // Null without data of the time.
  from_us: number | null;
  to_us: number | null;
  by: UsageBy;
  simulated: boolean;
  gpus: number;
  total: UsageSums;
  groups: UsageGroup[];
  // Labels of pods, by which it can be summed.
  labels: string[];
  omitted: number;
  // Of several hosts: until when those that send are summed, and of which something is missing.
  coverage?: { hosts: number; until_us: number | null; gaps: { host: string; why: string }[]; gaps_omitted: number };
}

// "label:NAME" is a label of pods.
export type UsageBy = (typeof USAGE_BY)[number] | `label:${string}`;
export const USAGE_BY = ["owner", "pod", "namespace", "container", "job", "service", "user", "application", "process", "device", "host"] as const;

// Facts about a device; if only its work is known, uuid and name are empty and ordinal is -1.
export interface Device {
  device: string;
  name: string;
  uuid: string;
  ordinal: number;
  simulated: boolean;
}

// A device's strip includes the device's facts.
export interface Strip extends Partial<Device> {
  id: string;
  label: string;
  unit: string;
  max: number | null;
  // Null for buckets that were not observed.
  values: (number | null)[];
  // For a device's work: the observed part of each bucket, 0…1.
  observed?: number[];
  // And the part of it that lacks the work of a process whose profiling was paused: the value is a lower bound there.
  partial?: number[];
  // For a device's state: its name in the catalogue and its meaning.
  metric?: string;
  meaning?: string;
}

// An event on a device: an error that its driver reported, or a time in which it was slowed down.
export interface Mark {
  kind: "xid" | "throttled";
  device: string;
  from_us: number;
  to_us: number;
  code: number;
  text: string;
}

export interface Strips {
  from_us: number;
  to_us: number;
  bucket_us: number;
  strips: Strip[];
  marks: Mark[];
  marks_omitted: number;
}

export interface DeviceUse extends Device {
  // "GPU 0", also of several traces distinct.
  label: string;
  kernels: number;
  busy_ns: number;
  observed_ns: number;
  // Of that, without the work of a process whose profiling was paused.
  partial_ns: number;
  streams: { stream: number; busy_ns: number }[];
}

export interface Devices {
  devices: DeviceUse[];
}

export interface Thread {
  tid: number;
  name: string;
  cpu_ns: number;
}

export interface Process {
  id: string;
  pid: number;
  name: string;
  command: string;
  // "ml/train-7/worker" in a pod; empty without a container.
  container: string;
  cpu_ns: number;
  started_us: number | null;
  exited_us: number | null;
  threads: Thread[];
  // With gpus=1.
  gpus?: { busy_ns: number }[];
}

export interface Processes {
  processes: Process[];
}

export interface Binary {
  name: string;
  path: string;
  build_id: string;
}

// Of both sides of a comparison, in pre-order from the root.
export interface StacksJson {
  strings: string[];
  nodes: { name: number[]; parent: number[]; a_ns: number[]; b_ns: number[] };
  omitted: number;
}

export interface RatioJson {
  ratio: number;
  low: number;
  high: number;
  significant: boolean;
}

export interface ComparedLine {
  name: string;
  count_a: number;
  count_b: number;
  a_ns: number;
  b_ns: number;
  change: "none" | "slower" | "faster" | "more_launches" | "fewer_launches" | "only_in_a" | "only_in_b";
  duration: RatioJson | null;
}

export interface CompareJson {
  type: string;
  a: { from_us: number | null; to_us: number | null };
  b: { from_us: number | null; to_us: number | null };
  // Why GPU work isn't compared; empty if it is.
  why_not: string;
  gpu: { kernels: ComparedLine[]; phases: ComparedLine[]; work: number | null; omitted: number; a: { notes: string[] }; b: { notes: string[] } } | null;
  sentences: string[];
  // Whether B's times are divided for as much work as A did, else for as long a time.
  by_work: boolean;
  divisor: number;
  stacks: StacksJson;
}

export interface FlamegraphJson {
  type: string;
  unit: string;
  total: number;
  samples: number;
  one_second_in: number;
  strings: string[];
  binaries: Binary[];
  // `internal` is 1 for functions that explain nothing to a user, else 0.
  functions: { name: number[]; binary: number[]; kind: string[]; file: number[]; line: number[]; internal: number[] };
  // `interval` is absent for CPU time, unless only some seconds were read.
  nodes: { function: number[]; parent: number[]; self: number[]; total: number[]; interval?: number[] };
  omitted: { nodes: number; total: number };
  // Threads of profilers, which are left out.
  hidden: { threads: number; total: number };
}

// A share of time: a kernel and the line that launched it, or a line and what it called.
export interface Share {
  name: string;
  detail: string;
  time_ns: number;
}

// How GPUs spent their time; null if none did anything.
export interface Summary {
  gpu: {
    devices: number;
    busy_ns: number;
    observed_ns: number;
    // Of that, without the work of a process whose profiling was paused.
    partial_ns: number;
    kernels: number;
    // Percent; null where the driver doesn't say.
    sm_active: number | null;
    tensor_active: number | null;
    // Sentences.
    busy: string;
    idle: string;
    idle_cause: "cpu" | "waits" | "launch_threads" | "unknown";
    hottest: Share[];
    while_idle: Share[];
    waiting_in: Share[];
    launch_threads_in: Share[];
  } | null;
}

// A source file with the time of its lines; `text` and `modified_us` are null if it can't be read, and `unreadable`
// says why.
export interface SourceJson {
  file: string;
  total: { cpu: number; gpu: number; waits: number };
  lines: { line: number[]; cpu_self: number[]; gpu_self: number[]; waits_self: number[]; cpu: number[]; gpu: number[]; waits: number[] };
  text: string | null;
  modified_us: number | null;
  unreadable: string;
}

// A part of a step's time, a cause considered or a signal, before an incident and during it.
export interface Account {
  signal: string;
  label: string;
  before: number | null;
  during: number | null;
  score: number;
  sentence: string;
}

export interface IncidentStrip {
  metric: string;
  label: string;
  unit: string;
  values: (number | null)[];
}

export interface Incident {
  id: string;
  process: string;
  name: string;
  pid: number;
  // Of the thread of one of several loops in the process; 0: of its only loop, or the first.
  tid: number;
  from_us: number;
  // Null while it lasts, or if its end was not observed.
  to_us: number | null;
  slowdown: number;
  cause: string;
  confidence: number;
  sentence: string;
  // Whether `before` is the time after it, as the steps before it were never observed.
  before_is_later: boolean;
  account: Account[];
  causes: Account[];
  evidence: Account[];
  shown_from_us?: number;
  shown_to_us?: number;
  strips: IncidentStrip[];
}

// A leading indicator that moved as it does before steps slow down.
export interface Warning {
  id: string;
  indicator: string;
  device: string | null;
  from_us: number;
  to_us: number | null;
  sentence: string;
  // The incident that followed, if any, and the lead time; negative if the warning came too late.
  incident: string | null;
  lead_us: number | null;
}

// What the steps of a program usually do, outside of incidents.
export interface Program {
  process: string;
  name: string;
  pid: number;
  tid: number;
  // In the selected time.
  steps: number;
  step_ns: number;
  // Of the waits before a step that aren't part of it.
  between_ns: number;
  // The longest first. The sentence explains a part that disturbs all steps, and is empty for others.
  parts: { signal: string; label: string; time_ns: number; sentence: string }[];
  // Steps that launch other work each, by their first one, if several are common and differ in length.
  kinds: { steps: number; mean_ns: number; from_us: number; to_us: number }[];
}

export interface Incidents {
  steps: number;
  omitted: number;
  incidents: Incident[];
  programs: Program[];
  warnings: Warning[];
}

// The query parameters that select samples, the same for every endpoint.
export interface Selection {
  from_us?: number;
  to_us?: number;
  process?: string;
  tid?: number;
  filter?: string;
  device?: string;
  stream?: number;
  while_gpu_idle?: number;
}

// What ran when: columns of equal length per track, sorted by row, then start. Times are ns since `from_us`.
export interface SlicesJson {
  start: number[];
  length: number[];
  // Index into the names.
  name: number[];
  // Left out where all are 0, 1 and `length`.
  row?: number[];
  // How many events a slice stands for, and in how much of its time they ran.
  count?: number[];
  busy?: number[];
}

export type TrackKind = "stream" | "steps" | "states" | "samples" | "ranges" | "calls";

// A stream has a device; states, samples, ranges and calls have a thread.
export interface TrackJson {
  kind: TrackKind;
  process: string;
  device?: string;
  stream?: number;
  tid?: number;
  thread?: string;
  rows: number;
  slices: SlicesJson;
}

export interface TimelineJson {
  from_us: number;
  to_us: number;
  // Shorter events are summed, those of each interval of this length.
  resolution_ns: number;
  // In the time, on all tracks.
  events: number;
  names: { name: string; kind: string }[];
  devices: { device: string; label: string; name: string; simulated: boolean }[];
  processes: { process: string; pid: number; name: string; command: string }[];
  // Who used devices around the time, and when that would have been recorded. Of traces none.
  gpu_users: { process: string; device: string; observed: { start: number[]; length: number[] } }[];
  tracks: TrackJson[];
  omitted_tracks: number;
}

// One piece of GPU work, and the call that launched it.
export interface Work {
  work: {
    name: string;
    kind: "kernel" | "memcpy" | "memset";
    start_us: number;
    start_ns: string;
    duration_ns: number;
    correlation: number;
    grid?: number[];
    block?: number[];
    registers?: number | null;
    shared_bytes?: number | null;
    bytes?: number;
    copy?: string;
    source_memory?: string;
    target_memory?: string;
    graph_node?: number | null;
  };
  launch: {
    name: string;
    tid: number;
    thread: string;
    // How long before the work's start the call began.
    before_ns: number;
    duration_ns: number;
    // Outermost first; empty if it was not sampled.
    stack: string[];
  } | null;
}
