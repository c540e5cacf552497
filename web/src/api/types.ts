// SPDX-License-Identifier: Apache-2.0

// What the server answers, as docs/api.md declares it. Times are microseconds since the Unix epoch
// (`_us`), durations nanoseconds (`_ns`). Keys that are not listed may appear and are ignored.

export interface Source {
  id: string;
  host: string;
  kind: string;
  hz: number | null;
}

export interface Drop {
  reason: string;
  meaning: string;
  // Data is missing; else it is there with less detail than it could have.
  lost: boolean;
  count: number;
}

export interface Overview {
  version: string;
  mode: "up" | "view";
  live: boolean;
  title: string;
  simulated: boolean;
  from_us: number | null;
  to_us: number | null;
  cpus: number;
  sources: Source[];
  samples: number;
  drops: Drop[];
  notices: string[];
}

export interface Strip {
  id: string;
  label: string;
  unit: string;
  max: number | null;
  values: (number | null)[];
}

export interface Strips {
  from_us: number;
  to_us: number;
  bucket_us: number;
  strips: Strip[];
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
  cpu_ns: number;
  started_us: number | null;
  exited_us: number | null;
  threads: Thread[];
}

export interface Processes {
  processes: Process[];
}

export interface Binary {
  name: string;
  path: string;
  build_id: string;
}

export interface FlamegraphJson {
  type: string;
  unit: string;
  total: number;
  samples: number;
  strings: string[];
  binaries: Binary[];
  functions: { name: number[]; binary: number[]; kind: string[]; file: number[]; line: number[] };
  nodes: { function: number[]; parent: number[]; self: number[]; total: number[] };
  omitted: { nodes: number; total: number };
}

// The query parameters that say which samples are meant, the same for every endpoint.
export interface Selection {
  from_us?: number;
  to_us?: number;
  process?: string;
  tid?: number;
  filter?: string;
}
