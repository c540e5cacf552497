// SPDX-License-Identifier: Apache-2.0

// A generated timeline, the same on every run, as `GET /api/v1/timeline` answers: steps of 57 ms on three streams of
// one GPU, their calls and ranges, and the threads of three processes. While the loader is slow, two of three steps are
// missing: the stream is empty, and the loader's thread runs all the time.

import { DEVICES, LENGTH_US, PROCESSES, random, START_US } from "./fixture-data.mjs";

const STEP_NS = 57e6;
const STEPS = Math.floor((LENGTH_US * 1000) / STEP_NS);
const SLOW = [0.55, 0.68];
const isSlow = (step) => step / STEPS > SLOW[0] && step / STEPS < SLOW[1];
const runs = (step) => !isSlow(step) || step % 3 === 0;
const [TRAIN, POSTGRES] = PROCESSES;

const GEMM = "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64";
const FLASH = "void flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, 4>, true>(Flash_fwd_params)";
const NORM = "void at::native::layer_norm_kernel<float>(int, float const*)";
const ADAM = "void multi_tensor_apply_kernel<AdamFunctor>(float)";
const NCCL = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)";

const names = [];
const nameOf = (name, kind) => {
  const at = names.findIndex((one) => one.name === name && one.kind === kind);
  return at >= 0 ? at : names.push({ name, kind }) - 1;
};

// Events of one step: [start, length, name, row], ns since the step's beginning, sorted by row, then start.
const next = random(3);
const stream7 = [];
const calls = [];
for (let at = 3e6, i = 0; at < 33e6; i++) {
  const length = Math.round([420e3, 260e3, 35e3, 6e3][i % 4] * (0.8 + 0.4 * next()));
  stream7.push([Math.round(at), length, nameOf([GEMM, FLASH, GEMM, NORM][i % 4], "kernel"), 0]);
  calls.push([Math.round(at - 152e3 - 40e3 * next()), 9000, nameOf("cudaLaunchKernel", "call"), 0]);
  at += length + 2000 + 30e3 * next();
}
stream7.push([35.2e6, 2.4e6, nameOf(ADAM, "kernel"), 0]);
calls.push([34e6, 11e3, nameOf("cudaLaunchKernel", "call"), 0], [36e6, 1.7e6, nameOf("cudaDeviceSynchronize", "call"), 0]);
const COPY = nameOf("htod", "memcpy");
const range = (name, kind) => nameOf(name, kind);
const PATTERNS = {
  stream7,
  stream13: [[0.4e6, 2.1e6, COPY, 0]],
  stream16: [[24e6, 3e6, nameOf(NCCL, "kernel"), 0], [30e6, 4.4e6, nameOf(NCCL, "kernel"), 0]],
  calls,
  steps: [[0, STEP_NS, nameOf("step", "step"), 0]],
  ranges: [
    [0.2e6, 38e6, range("train_step", "annotation"), 0],
    [0.3e6, 2e6, range("next_batch", "annotation"), 1], [2.6e6, 15e6, range("forward", "annotation"), 1], [17.7e6, 15.3e6, range("backward", "annotation"), 1], [33.6e6, 4.4e6, range("optimizer", "annotation"), 1],
    [2.8e6, 4e6, range("aten::linear", "operator"), 2], [7e6, 6e6, range("aten::scaled_dot_product_attention", "operator"), 2], [18e6, 14e6, range("AddmmBackward0", "operator"), 2],
  ],
  samples: [[1e6, 9e6, nameOf("step (train.py:88)", "sample"), 0], [12e6, 21e6, nameOf("cudaLaunchKernel", "sample"), 0], [40e6, 3e6, nameOf("_PyEval_EvalFrameDefault", "sample"), 0]],
  loading: [[0, 30e6, nameOf("inflate_fast", "sample"), 0], [34e6, 15e6, nameOf("jsimd_idct_islow_avx2", "sample"), 0]],
  idling: [[5e6, 0.8e6, nameOf("heap_getnextslot", "sample"), 0]],
};
const STATE = Object.fromEntries(["running", "run_queue", "blocked_io", "sleeping", "waiting"].map((state) => [state, nameOf(state, `state_${state}`)]));
// Shares of the time in each state, in a usual step and in a slow one.
const STATES = {
  411: [{ running: 0.62, run_queue: 0.03, waiting: 0.35 }, { running: 0.2, waiting: 0.8 }],
  431: [{ running: 0.42, blocked_io: 0.08, sleeping: 0.5 }, { running: 0.9, run_queue: 0.06, blocked_io: 0.04 }],
  207: [{ running: 0.03, sleeping: 0.97 }, { running: 0.05, sleeping: 0.95 }],
};

const thread = (process, { tid, name }) => ({ process: process.id, tid, thread: name });
const TRACKS = [
  ...[7, 13, 16].map((stream) => ({ kind: "stream", device: DEVICES[0].device, process: TRAIN.id, stream, rows: 1, pattern: `stream${stream}` })),
  { kind: "steps", process: TRAIN.id, rows: 1, pattern: "steps" },
  { kind: "states", ...thread(TRAIN, TRAIN.threads[0]), rows: 1 },
  { kind: "samples", ...thread(TRAIN, TRAIN.threads[0]), rows: 1, pattern: "samples" },
  { kind: "ranges", ...thread(TRAIN, TRAIN.threads[0]), rows: 3, pattern: "ranges" },
  { kind: "calls", ...thread(TRAIN, TRAIN.threads[0]), rows: 1, pattern: "calls" },
  { kind: "states", ...thread(TRAIN, TRAIN.threads[1]), rows: 1 },
  { kind: "samples", ...thread(TRAIN, TRAIN.threads[1]), rows: 1, pattern: "loading" },
  { kind: "states", ...thread(POSTGRES, POSTGRES.threads[0]), rows: 1 },
  { kind: "samples", ...thread(POSTGRES, POSTGRES.threads[0]), rows: 1, pattern: "idling" },
];

const ORIGIN_NS = BigInt(START_US) * 1000n;

// Steps with any part in [from, to), ns since the recording's start.
function* stepsIn(from, to, always) {
  for (let step = Math.max(0, Math.floor(from / STEP_NS) - 1); step < STEPS && step * STEP_NS < to; step++) if (always || runs(step)) yield step;
}

// Events of at least the resolution as they are, shorter ones summed by row and cell; in ns since `from`.
function slicesOf(pattern, rows, from, to, resolution) {
  const shift = Number(ORIGIN_NS % BigInt(resolution));
  const slices = [];
  for (let row = 0; row < rows; row++) {
    const found = [];
    let cell = null;
    for (const step of stepsIn(from, to, pattern === "loading" || pattern === "idling")) {
      for (const [at, length, name, inRow] of PATTERNS[pattern]) {
        const start = step * STEP_NS + at;
        if (inRow !== row || start >= to || start + length <= from) continue;
        if (length >= resolution) {
          found.push({ row, start, end: start + length, name, count: 1, busy: length });
          continue;
        }
        const index = Math.floor((start + shift) / resolution);
        if (cell?.index !== index) found.push((cell = { index, row, start, end: start, name, count: 0, busy: 0, most: 0 }));
        cell.end = Math.max(cell.end, start + length);
        cell.count++;
        cell.busy += length;
        if (length > cell.most) Object.assign(cell, { name, most: length });
      }
    }
    slices.push(...found.sort((a, b) => a.start - b.start));
  }
  return columnsOf(slices, from);
}

function columnsOf(slices, from) {
  const column = (of) => slices.map(of);
  const some = (test) => slices.some(test);
  return {
    start: column(({ start }) => start - from),
    length: column(({ start, end }) => end - start),
    name: column(({ name }) => name),
    ...(some(({ row }) => row > 0) && { row: column(({ row }) => row) }),
    ...(some(({ count }) => count !== 1) && { count: column(({ count }) => count) }),
    ...(some(({ busy, start, end }) => busy !== end - start) && { busy: column(({ busy }) => busy) }),
  };
}

function statesOf(tid, from, to, resolution) {
  const length = Math.max(resolution, STEP_NS / 4);
  const slices = [];
  for (let cell = Math.floor(from / length); cell * length < to; cell++) {
    const start = cell * length;
    if (start + length <= 0 || start >= LENGTH_US * 1000) continue;
    const shares = STATES[tid][isSlow(start / STEP_NS) ? 1 : 0];
    for (const [state, share] of Object.entries(shares)) slices.push({ row: 0, start, end: start + length, name: STATE[state], count: 1, busy: Math.round(length * share * (0.9 + 0.1 * Math.sin(cell))) });
  }
  return columnsOf(slices, from);
}

function inSelection(track, { process, tid, device, stream }) {
  if (process && !process.split(",").includes(track.process)) return false;
  if (tid !== undefined && track.tid !== undefined && track.tid !== tid) return false;
  if (device && track.device !== undefined && (track.device !== device || (stream !== undefined && track.stream !== stream))) return false;
  return true;
}

// Profiling was paused in the first tenth of the recording.
const ACTIVE_FROM = 100 * LENGTH_US;

function observedIn(from, to) {
  const start = Math.max(from, ACTIVE_FROM);
  return start < to ? { start: [start - from], length: [to - start] } : { start: [], length: [] };
}

const resolutionOf = (ns, columns) => 2 ** Math.max(0, Math.ceil(Math.log2(ns / columns)));

export function timeline(selection, until, hasGpu) {
  const from_us = selection.from_us ?? START_US;
  const to_us = Math.min(selection.to_us ?? until, until);
  const [from, to] = [(from_us - START_US) * 1000, (to_us - START_US) * 1000];
  const resolution_ns = resolutionOf(Math.max(1, to - from), selection.columns ?? 1200);
  const tracks = TRACKS.filter((track) => inSelection(track, selection) && (hasGpu || ["states", "samples"].includes(track.kind)))
    .map(({ pattern, ...track }) => ({ ...track, slices: track.kind === "states" ? statesOf(track.tid, from, to, resolution_ns) : slicesOf(pattern, track.rows, from, to, resolution_ns) }))
    .filter(({ slices }) => slices.start.length > 0);
  const events = tracks.reduce((sum, { slices }) => sum + (slices.count?.reduce((total, count) => total + count, 0) ?? slices.start.length), 0);
  return {
    from_us, to_us, resolution_ns, events, names, tracks, omitted_tracks: 0,
    gpu_users: hasGpu ? [{ process: TRAIN.id, device: DEVICES[0].device, observed: observedIn(from, to) }] : [],
    devices: DEVICES.map(({ device, name, ordinal, simulated }) => ({ device, label: `GPU ${ordinal}`, name, simulated })),
    processes: PROCESSES.map(({ id, pid, command }) => ({ process: id, pid, name: command.split(" ").slice(0, 2).join(" "), command })),
  };
}

// One piece of work of a stream, by its exact start; null if there is none.
export function work({ process, device, stream, start_ns }) {
  const at = Number(BigInt(start_ns) - ORIGIN_NS);
  const step = Math.floor(at / STEP_NS);
  const found = PATTERNS[`stream${stream}`]?.find(([start]) => start === at - step * STEP_NS);
  if (!found || process !== TRAIN.id || device !== DEVICES[0].device || !runs(step)) return null;
  const { name, kind } = names[found[2]];
  const base = { name, kind, start_us: START_US + Math.floor(at / 1000), start_ns, duration_ns: found[1], correlation: step, graph_node: null };
  if (kind === "memcpy") return { work: { ...base, bytes: 50e6, copy: "htod", source_memory: "pageable", target_memory: "device" }, launch: null };
  return {
    work: { ...base, grid: [128, 4, 1], block: [256, 1, 1], registers: 168, shared_bytes: 49152 },
    launch: {
      name: "cudaLaunchKernel", tid: 411, thread: "python3", before_ns: 152e3, duration_ns: 9000,
      stack: ["main", "<module> (train.py:112)", "step (train.py:88)", "forward (model.py:41)", "at::native::addmm_out_cuda_impl", "cudaLaunchKernel"],
    },
  };
}

// The answer to a time with millions of events: every track is full of sums.
export function largeTimeline({ from_us, to_us, columns }, tracks, slices) {
  const next = random(11);
  const length = (to_us - from_us) * 1000;
  const resolution_ns = resolutionOf(length, columns);
  const kernels = Array.from({ length: 60 }, (_, i) => ({ name: `void kernel_${i}<float, ${i}>(Params)`, kind: "kernel" }));
  const kinds = ["stream", "stream", "calls", "ranges"];
  const list = Array.from({ length: tracks }, (_, t) => {
    const kind = kinds[Math.floor((t * kinds.length) / tracks)];
    const cell = length / slices;
    const start = Array.from({ length: slices }, (_, i) => Math.round((i + 0.3 * next()) * cell));
    const ends = start.map((at) => Math.max(1, Math.round(cell * (0.2 + 0.5 * next()))));
    return {
      kind, process: PROCESSES[t % 2].id, rows: 1,
      ...(kind === "stream" ? { device: DEVICES[0].device, stream: t } : { tid: 1000 + t, thread: `worker-${t}` }),
      slices: { start, length: ends, name: start.map(() => Math.floor(60 * next())), count: start.map(() => 1 + Math.floor(66 * next())), busy: ends.map((one) => Math.round(one * next())) },
    };
  });
  // Tracks of a stream, then those of each process.
  list.sort((a, b) => (a.kind === "stream" ? 0 : 1) - (b.kind === "stream" ? 0 : 1) || a.process.localeCompare(b.process));
  const { devices, processes } = timeline({ from_us, to_us: from_us + 1 }, from_us + 1, false);
  const events = list.reduce((sum, one) => sum + one.slices.count.reduce((a, b) => a + b, 0), 0);
  return { from_us, to_us, resolution_ns, events, names: kernels, devices, processes, gpu_users: [], tracks: list, omitted_tracks: 0 };
}
