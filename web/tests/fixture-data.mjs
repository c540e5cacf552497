// SPDX-License-Identifier: Apache-2.0

// Generated profiles, the same on every run. `realistic` is a training script with its loader, a
// database and the kernel; with GPUs, the script trains on one of two; `large` is a call tree of any
// number of nodes.

// Mulberry32: small, seeded, good enough for test data.
export function random(seed) {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

// 2025-11-21 01:06:40 UTC; the recording is 15 minutes long.
export const START_US = 1763687200000000;
export const LENGTH_US = 900_000_000;
const SLICES = 450;
const SLICE_US = LENGTH_US / SLICES;
const PERIOD_NS = 1e9 / 19;

// Name, path, kind, and whether its functions are internal.
const BINARIES = {
  py: ["python3.11", "/usr/bin/python3.11", "native", 1],
  script: ["", "", "python"],
  torch: ["libtorch_cpu.so", "/opt/venv/lib/python3.11/site-packages/torch/lib/libtorch_cpu.so", "native"],
  cuda: ["libcuda.so.1", "/usr/lib/x86_64-linux-gnu/libcuda.so.1", "native", 1],
  rt: ["libcudart.so.12", "/opt/venv/lib/libcudart.so.12", "native", 1],
  z: ["libz.so.1.2.13", "/usr/lib/x86_64-linux-gnu/libz.so.1.2.13", "native"],
  jpeg: ["libjpeg.so.62.3.0", "/usr/lib/x86_64-linux-gnu/libjpeg.so.62.3.0", "native"],
  libc: ["libc.so.6", "/usr/lib/x86_64-linux-gnu/libc.so.6", "native"],
  pg: ["postgres", "/usr/lib/postgresql/15/bin/postgres", "native"],
  kernel: ["[kernel]", "", "kernel"],
  wait: ["", "", "kernel"],
  gpu: ["", "", "gpu"],
  unknown: ["", "", "unknown"],
};

// "binary!function", separated by ";". A name of a script may carry "@file:line".
const PYTHON = "py!main;py!Py_BytesMain;py!pymain_run_python;script!<module>@train.py:112";
const STEP = `${PYTHON};script!step@train.py:88`;
const LOAD = "script!_worker_loop@worker.py:309;script!fetch@fetch.py:51;script!load_batch@train.py:41";
const SYSCALL = "kernel!entry_SYSCALL_64;kernel!do_syscall_64";
const TRAIN = [
  [9, `${STEP};script!forward@model.py:41;torch!torch::autograd::THPVariable_linear(_object*, _object*, _object*);torch!at::_ops::linear::call(at::Tensor const&, at::Tensor const&, std::optional<at::Tensor> const&);torch!at::native::linear(at::Tensor const&, at::Tensor const&);torch!at::native::addmm_out_cuda_impl;rt!cudaLaunchKernel;cuda!cuLaunchKernel`],
  [6, `${STEP};script!forward@model.py:41;script!attention@model.py:77;torch!at::_ops::scaled_dot_product_attention::call;torch!pytorch_flash::mha_fwd;rt!cudaLaunchKernel;cuda!cuLaunchKernel;${SYSCALL};kernel!__x64_sys_ioctl;kernel!nvidia_ioctl`],
  [4, `${STEP};script!forward@model.py:41;script!attention@model.py:77;torch!at::native::copy_;libc!__memmove_avx512_unaligned_erms`],
  [3, `${STEP};script!forward@model.py:41;script!norm@model.py:23;torch!at::native::layer_norm_kernel`],
  [11, `${STEP};torch!torch::autograd::Engine::execute;torch!torch::autograd::Engine::thread_main;torch!torch::autograd::generated::AddmmBackward0::apply;torch!at::_ops::mm::call;rt!cudaLaunchKernel;cuda!cuLaunchKernel`],
  [2, `${STEP};torch!torch::autograd::Engine::execute;torch!torch::autograd::Engine::thread_main;torch!torch::autograd::AccumulateGrad::apply;torch!at::native::add_`],
  [5, `${STEP};script!optimizer_step@adamw.py:220;torch!at::_ops::_foreach_addcdiv_::call;torch!at::native::foreach_tensor_addcdiv;rt!cudaLaunchKernel;cuda!cuLaunchKernel`],
  [3, `${STEP};script!optimizer_step@adamw.py:220;py!_PyEval_EvalFrameDefault;py!PyDict_GetItem`],
  [3, `${STEP};script!synchronize@cuda.py:801;rt!cudaDeviceSynchronize;cuda!cuCtxSynchronize;${SYSCALL};kernel!__x64_sys_poll;kernel!do_poll;kernel!schedule_hrtimeout_range`],
  [1, `${PYTHON};script!log_metrics@train.py:19;py!_PyEval_EvalFrameDefault;libc!__vfprintf_internal;libc!__write;${SYSCALL};kernel!ksys_write;kernel!vfs_write;kernel!ext4_file_write_iter`],
  [1, "unknown![unknown]"],
];
const LOADER = [
  [16, `${PYTHON};${LOAD};script!decompress@zlib;z!inflate;z!inflate_fast`],
  [4, `${PYTHON};${LOAD};script!decompress@zlib;z!inflate;z!crc32_z`],
  [7, `${PYTHON};${LOAD};script!decode@image.py:63;jpeg!jpeg_read_scanlines;jpeg!decompress_onepass;jpeg!jsimd_idct_islow_avx2`],
  [3, `${PYTHON};${LOAD};script!decode@image.py:63;jpeg!jpeg_read_scanlines;jpeg!h2v2_fancy_upsample`],
  [3, `${PYTHON};${LOAD};script!augment@train.py:58;py!_PyEval_EvalFrameDefault;py!_PyEval_EvalFrameDefault;py!PyNumber_Multiply`],
  [2, `${PYTHON};${LOAD};libc!__libc_read;${SYSCALL};kernel!ksys_read;kernel!vfs_read;kernel!ext4_file_read_iter;kernel!filemap_read;kernel!copy_page_to_iter`],
  [1, "unknown![unknown]"],
];
const POSTGRES = [
  [3, "pg!main;pg!PostmasterMain;pg!ServerLoop;pg!PostgresMain;pg!exec_simple_query;pg!PortalRun;pg!ExecScan;pg!heap_getnextslot"],
  [2, `pg!main;pg!PostmasterMain;pg!ServerLoop;pg!PostgresMain;pg!ReadCommand;libc!recv;${SYSCALL};kernel!__sys_recvfrom;kernel!tcp_recvmsg`],
  [1, "pg!main;pg!PostmasterMain;pg!ServerLoop;pg!BackgroundWriterMain;pg!BgBufferSync"],
];

// GPU work under the stack that launched it: [ms in a second, half the interval in ms, stream, stack].
const LAUNCH = "rt!cudaLaunchKernel;cuda!cuLaunchKernel";
const GPU_WORK = [
  [210, 9, 7, `${STEP};script!forward@model.py:41;torch!at::native::addmm_out_cuda_impl;${LAUNCH};gpu!sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64`],
  [95, 6, 7, `${STEP};script!forward@model.py:41;script!attention@model.py:77;torch!pytorch_flash::mha_fwd;${LAUNCH};gpu!void flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, 4>, true>(Flash_fwd_params)`],
  [130, 9, 7, `${STEP};torch!torch::autograd::Engine::thread_main;torch!at::_ops::mm::call;${LAUNCH};gpu!sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64`],
  [44, 3, 16, `${STEP};torch!torch::autograd::Engine::thread_main;script!all_reduce@distributed.py:12;gpu!ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)`],
  [31, 2, 13, `${PYTHON};script!upload@data.py:20;rt!cudaMemcpyAsync;gpu![memcpy htod]`],
  [26, 0, 7, `${PYTHON};script!capture@optimizer.py:31;gpu![captured in graph];gpu!void multi_tensor_apply_kernel<AdamFunctor>(float)`],
  [4, 0, 7, "unknown![stack not sampled];gpu!void at::native::reduce_kernel<512, 1>(at::native::ReduceOp)"],
];

const id = (n) => n.toString(16).padStart(32, "0");

// Threads with their stacks and how busy each is over time (0 to 1).
const wave = (t, period, low) => low + (1 - low) * (0.5 + 0.5 * Math.sin((2 * Math.PI * t) / period));
export const PROCESSES = [
  {
    id: id(0xa411), pid: 411, name: "python3", command: "python3 train.py --epochs 3", container: "ml/train-7/worker",
    threads: [
      { tid: 411, name: "python3", stacks: TRAIN, busy: (t) => (t > 0.55 && t < 0.68 ? 0.25 : wave(t, 0.11, 0.72)) },
      { tid: 431, name: "loader-0", stacks: LOADER, busy: (t) => (t > 0.55 && t < 0.68 ? 0.95 : wave(t, 0.07, 0.3)) },
    ],
  },
  {
    id: id(0xb207), pid: 207, name: "postgres", command: "postgres -D /var/lib/postgresql/15/main", container: "",
    threads: [{ tid: 207, name: "postgres", stacks: POSTGRES, busy: (t) => 0.04 + 0.05 * wave(t, 0.3, 0) }],
  },
];

// All samples: [slice, process, thread, stack, weight in samples].
function makeSamples() {
  const next = random(7);
  const rows = [];
  PROCESSES.forEach((process, p) =>
    process.threads.forEach((thread, t) => {
      const sum = thread.stacks.reduce((total, [weight]) => total + weight, 0);
      for (let slice = 0; slice < SLICES; slice++) {
        // gpusonde was stopped for a while: nothing was observed.
        if (slice >= 330 && slice < 342) continue;
        const samples = thread.busy(slice / SLICES) * (0.9 + 0.2 * next()) * (SLICE_US / 1e6) * 19;
        for (let s = 0; s < thread.stacks.length; s++) {
          const weight = Math.floor((samples * thread.stacks[s][0]) / sum + next());
          if (weight > 0) rows.push([slice, p, t, s, weight]);
        }
      }
    }),
  );
  return rows;
}
const SAMPLES = makeSamples();

function inSelection({ from_us = -Infinity, to_us = Infinity, process, tid, filter }, until) {
  const needle = filter?.toLowerCase();
  return SAMPLES.filter(([slice, p, t, s]) => {
    const at = START_US + slice * SLICE_US;
    const thread = PROCESSES[p].threads[t];
    return (
      at >= from_us && at < Math.min(to_us, until) &&
      (!process || process.split(",").includes(PROCESSES[p].id)) &&
      (tid === undefined || thread.tid === tid) &&
      (!needle || thread.stacks[s][1].split(";").some((frame) => frame.split("!")[1].split("@")[0].toLowerCase().includes(needle)))
    );
  });
}

export const DEVICES = [0, 1].map((ordinal) => ({
  device: id(0xd000 + ordinal), name: "Simulated H100 80GB HBM3", uuid: `GPU-73696d75-6c61-7465-6400-00000000000${ordinal}`, ordinal, simulated: true,
}));

// The share of a moment that the first device is busy: little while the loader is slow. The second one idles.
const gpuBusy = (t) => (t > 0.55 && t < 0.68 ? 0.15 : 0.54);
const ofDevice = ({ device, stream }, work) => (!device || device === DEVICES[0].device) && (stream === undefined || stream === work[2]);

export function deviceUse(selection, until) {
  const from = selection.from_us ?? START_US;
  const seconds = (Math.min(selection.to_us ?? until, until) - from) / 1e6;
  const busy = Math.round(seconds * gpuBusy(((from + (seconds / 2) * 1e6 - START_US) / LENGTH_US)) * 1e9);
  return {
    devices: DEVICES.map((device) => ({
      ...device, label: `GPU ${device.ordinal}`, kernels: device.ordinal ? 0 : Math.round(seconds * 9000), busy_ns: device.ordinal ? 0 : busy, observed_ns: Math.round(seconds * 1e9), partial_ns: 0,
      streams: device.ordinal ? [] : [7, 16, 13].map((stream, i) => ({ stream, busy_ns: Math.round(busy / (i + 1.2)) })),
    })),
  };
}

function gpuStrips(selection, from, width, buckets) {
  return DEVICES.filter(({ device }) => !selection.device || selection.device === device).flatMap((device) => [{
    id: `gpu-${device.device}`, label: `GPU ${device.ordinal}`, unit: "%", max: 100, ...device,
    values: Array.from({ length: buckets }, (_, b) => {
      const t = (from + (b + 0.5) * width - START_US) / LENGTH_US;
      return t < 330 / SLICES || t >= 342 / SLICES ? (device.ordinal ? 0 : 100 * gpuBusy(t) * (0.9 + 0.2 * Math.sin(b))) : null;
    }),
  }, ...(selection.metrics === "1" ? stateStrips(device, from, width, buckets) : [])]);
}

const STATE = [
  ["gpu.sm.active", "SM activity", "%", 100, (t) => 76 * gpuBusy(t)],
  ["gpu.memory.used", "Memory used", "GiB", 79.6, (t) => 30 + 20 * t],
  ["gpu.clock.sm", "SM clock", "MHz", null, (t) => (t > 0.8 ? 1410 : 1980)],
  ["gpu.throttle.reasons", "Throttling", "%", 100, (t) => (t > 0.8 ? 100 : 0)],
  ["gpu.power", "Power", "W", 700, (t) => 90 + 600 * gpuBusy(t)],
];

function stateStrips({ device, ...facts }, from, width, buckets) {
  return STATE.map(([metric, label, unit, max, at]) => ({
    id: `gpu-${device}-${metric}`, label, metric, meaning: `the ${label.toLowerCase()}`, unit, max, device, ...facts,
    values: Array.from({ length: buckets }, (_, b) => at((from + (b + 0.5) * width - START_US) / LENGTH_US)),
  }));
}

const MARKS = [
  { kind: "throttled", device: DEVICES[0].device, from_us: START_US + 0.8 * LENGTH_US, to_us: START_US + LENGTH_US, code: 4, text: "slowed down by power cap (the board has reached its power limit)" },
  { kind: "xid", device: DEVICES[1].device, from_us: START_US + 0.25 * LENGTH_US, to_us: START_US + 0.25 * LENGTH_US, code: 79, text: "XID 79: the GPU has fallen off the bus" },
];

export function gpuFlamegraph(selection, until) {
  const seconds = (Math.min(selection.to_us ?? until, until) - (selection.from_us ?? START_US)) / 1e6;
  const needle = selection.filter?.toLowerCase();
  const work = GPU_WORK.filter((w) => ofDevice(selection, w) && (!needle || w[3].toLowerCase().includes(needle)));
  const stacks = work.map(([ms, interval, , stack]) => ({ stack, value: Math.round(ms * 1e6 * seconds), interval: Math.round(interval * 1e6 * seconds), samples: Math.round(seconds * ms * 12) }));
  return mergeStacks("gpu", stacks);
}

export function realisticStrips(selection, buckets, until, gpus) {
  const from = selection.from_us ?? START_US;
  const to = selection.to_us ?? until;
  const sums = new Array(buckets).fill(null);
  const width = (to - from) / buckets;
  for (let b = 0; b < buckets; b++) {
    const slice = Math.floor((from + (b + 0.5) * width - START_US) / SLICE_US);
    if (slice >= 0 && slice < SLICES && !(slice >= 330 && slice < 342)) sums[b] = 0;
  }
  const perSlice = new Float64Array(SLICES);
  for (const [slice, , , , weight] of inSelection(selection, until)) perSlice[slice] += weight;
  const values = sums.map((sum, b) => {
    if (sum === null) return null;
    const slice = Math.floor((from + (b + 0.5) * width - START_US) / SLICE_US);
    return (perSlice[slice] * PERIOD_NS) / (SLICE_US * 1000);
  });
  const cpu = { id: "cpu", label: "CPU", unit: "cores", max: 2, values };
  return { from_us: from, to_us: to, bucket_us: width, strips: [...(gpus ? gpuStrips(selection, from, width, buckets) : []), cpu],
    marks: gpus ? MARKS.filter((mark) => !selection.device || selection.device === mark.device) : [], marks_omitted: 0 };
}

export function realisticProcesses(selection, until) {
  const cpu = new Map();
  for (const [, p, t, , weight] of inSelection(selection, until)) {
    cpu.set(`${p}.${t}`, (cpu.get(`${p}.${t}`) ?? 0) + weight * PERIOD_NS);
  }
  const processes = PROCESSES.map(({ threads, ...process }, p) => {
    const listed = threads.map(({ tid, name }, t) => ({ tid, name, cpu_ns: Math.round(cpu.get(`${p}.${t}`) ?? 0) }));
    return { ...process, cpu_ns: listed.reduce((sum, { cpu_ns }) => sum + cpu_ns, 0), started_us: START_US - 5e6, exited_us: null, threads: listed };
  });
  return { processes: processes.filter(({ cpu_ns }) => cpu_ns > 0).sort((a, b) => b.cpu_ns - a.cpu_ns) };
}

// As many processes as a job of 200 ranks has, after the others; they have hardly any time.
export function rankProcesses(selection, until) {
  const ranks = Array.from({ length: 200 }, (_, rank) => ({
    id: id(0xc000 + rank), pid: 5000 + rank, name: "rank", cpu_ns: 200 - rank, started_us: START_US, exited_us: null, threads: [],
    command: `rank --index ${rank} --of 200 --checkpoint /mnt/checkpoints/a-name-long-enough-for-every-list/${rank}`,
    container: `ml/a-job-with-a-long-name-${rank}/worker`,
  }));
  return { processes: [...realisticProcesses(selection, until).processes, ...ranks] };
}

// Of a trace: processes with GPU work and without CPU samples.
export function traceProcesses() {
  const gpus = (busy_ns) => ({ cpu_ns: 0, started_us: null, exited_us: null, threads: [], gpu_observed_ns: 9e9, gpus: [{ device: DEVICES[0].device, kernels: 5, busy_ns, memory_bytes: null }] });
  return { processes: [0, 1].map((rank) => ({ id: id(0xd000 + rank), pid: 70 + rank, name: `trace rank ${rank}`, command: "", container: "", ...gpus(4e9 - rank * 1e9) })) };
}

// What `compare` says of two ranges of the training: a slower product of matrices, and a kernel that is new.
export function comparison({ type = "gpu", from_us, to_us, base_from_us, base_to_us }, gpus) {
  const duration = (ratio, significant) => ({ ratio, low: ratio - 0.004, high: ratio + 0.004, p: 0, significant, detectable: 1.01, between_runs: null });
  const line = (name, count_a, a_ns, count_b, b_ns, change, of = null) => ({ name, count_a, count_b, a_ns, b_ns, communication: false, change, slower_ns: b_ns - a_ns, duration: of, other_shapes: false });
  const long = `void at::native::vectorized_elementwise_kernel<4, ${"at::native::BinaryFunctor<float, float, float, ".repeat(6)}MulFunctor>`;
  const kernels = [
    line("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64", 9000, 21e9, 9000, 25.2e9, "slower", duration(1.2, true)),
    line(long, 0, 0, 300, 2.1e9, "only_in_b"),
    line("void flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, 4>, true>(Flash_fwd_params)", 4500, 9.5e9, 4500, 9.4e9, "none", duration(0.99, false)),
  ];
  const none = { a_ns: 0, b_ns: 0 };
  const frames = [["all", -1, 31e9, 37e9], ["train.py:88 step", 0, 31e9, 37e9], ["forward", 1, 22e9, 28e9], [kernels[0].name, 2, 21e9, 25.2e9], [long, 2, 0, 2.1e9], ["attention", 1, 9e9, 9e9], [kernels[2].name, 5, 9e9, 9e9]];
  const strings = frames.map(([name]) => name);
  const columns = gpus || type !== "gpu" ? frames : [["all", -1, none.a_ns, none.b_ns]];
  return {
    type,
    a: { from_us: base_from_us, to_us: base_to_us },
    b: { from_us: from_us ?? START_US, to_us: to_us ?? START_US + LENGTH_US },
    why_not: gpus ? "" : "neither A nor B has GPU work",
    gpu: gpus ? { work: 1.03, kernels, phases: [line("ProfilerStep#", 100, 31e9, 100, 37e9, "slower", duration(1.19, true))], omitted: 12, a: { notes: [] }, b: { notes: ["B: 3 kernels end before they start; they are left out."] } } : null,
    sentences: gpus ? ["B takes 19.3 % more time than A for the same work (95 % interval: 18.9 % to 19.8 %).", `${kernels[0].name} takes 20.0 % longer per launch (95 % interval: 19.6 % to 20.4 %): +4.200 s.`] : [],
    by_work: gpus,
    divisor: gpus ? 1.03 : 1,
    stacks: { strings, nodes: { name: columns.map((_, i) => i), parent: columns.map(([, parent]) => parent), a_ns: columns.map(([, , a]) => a), b_ns: columns.map(([, , , b]) => b) }, omitted: gpus ? 7 : 0 },
  };
}

export function sampleCount(until) {
  return inSelection({}, until).reduce((sum, row) => sum + row[4], 0);
}

export function realisticFlamegraph(selection, until) {
  const rows = inSelection(selection, until);
  // While the GPU is idle the script waits and the loader works.
  const idle = ([, p, t]) => !selection.while_gpu_idle || PROCESSES[p].threads[t].name.startsWith("loader");
  return mergeStacks("cpu", rows.filter(idle).map(([, p, t, s, weight]) => ({
    stack: PROCESSES[p].threads[t].stacks[s][1], value: Math.round(weight * PERIOD_NS), interval: 0, samples: weight,
  })));
}

// A file of the script: load_batch is hot on the CPU, forward on the GPU.
export function sourceFile({ file }) {
  const code = Array.from({ length: 120 }, (_, i) => (i % 10 === 0 ? `def part_${i / 10}(batch):` : `    value_${i} = transform(batch, ${i})`));
  const readable = !file.includes("elsewhere");
  return {
    file, total: { cpu: 100e9, gpu: 60e9, waits: 30e9 },
    lines: { line: [0, 41, 77, 140], cpu_self: [5e8, 40e9, 3e9, 1e6], gpu_self: [0, 0, 50e9, 0], waits_self: [0, 12e9, 0, 0],
      cpu: [5e8, 41e9, 44e9, 1e6], gpu: [0, 0, 50e9, 0], waits: [0, 12e9, 12e9, 0] },
    text: readable ? code.join("\n") + "\n" : null, modified_us: readable ? START_US + 2 * LENGTH_US : null,
    unreadable: readable ? "" : `${file} is not in any source folder (give its folder with --sources)`,
  };
}

// The same stacks, waiting for different reasons.
export function waitingFlamegraph(selection, until) {
  const waits = [["io", "wait![waits for I/O]"], ["lock", "wait![waits for a lock]"], ["sleep", "wait![sleeps]"]];
  const rows = inSelection(selection, until).map(([, p, t, s, weight]) => ({
    wait: waits[(p + t + s) % waits.length], stack: PROCESSES[p].threads[t].stacks[s][1], weight,
  }));
  return mergeStacks("off_cpu", rows.filter(({ wait }) => !selection.wait || selection.wait === wait[0]).map(({ wait, stack, weight }) => ({
    stack: `${stack};${wait[1]}`, value: Math.round(weight * PERIOD_NS * 3), interval: 0, samples: weight,
  })));
}

// Merges stacks into the columns that docs/api.md declares.
function mergeStacks(type, stacks) {
  const functions = new Map();
  const make = (fn) => ({ fn, self: 0, total: 0, interval: 0, children: new Map() });
  const root = make(-1);
  let samples = 0;
  for (const { stack, value, interval, samples: count } of stacks) {
    samples += count;
    let node = root;
    node.total += value;
    for (const frame of stack.split(";")) {
      if (!functions.has(frame)) functions.set(frame, functions.size);
      const fn = functions.get(frame);
      if (!node.children.has(fn)) node.children.set(fn, make(fn));
      node = node.children.get(fn);
      node.total += value;
      node.interval = Math.hypot(node.interval, interval);
    }
    node.self += value;
  }
  const frames = [...functions.keys()].map((frame) => {
    const [binary, rest] = frame.split("!");
    const at = rest.lastIndexOf("@");
    const [name, origin] = at > 0 ? [rest.slice(0, at), rest.slice(at + 1)] : [rest, ""];
    return { binary, name, file: origin.split(":")[0], line: Number(origin.split(":")[1] ?? 0) };
  });
  const used = Object.keys(BINARIES).filter((key) => BINARIES[key][0] && frames.some(({ binary }) => binary === key));
  return columns({
    type,
    root,
    samples,
    binaries: used.map((key, i) => ({ name: BINARIES[key][0], path: BINARIES[key][1], build_id: BINARIES[key][1] && `8f1c${i}d27e` })),
    functions: frames.map((f) => ({ ...f, binary: used.indexOf(f.binary), kind: BINARIES[f.binary][2], internal: BINARIES[f.binary][3] ?? 0 })),
  });
}

function columns({ type, root, samples, binaries, functions }) {
  const strings = [""];
  const index = new Map([["", 0]]);
  const text = (value) => {
    if (!index.has(value)) {
      index.set(value, strings.length);
      strings.push(value);
    }
    return index.get(value);
  };
  const nodes = { function: [], parent: [], self: [], total: [], ...(type === "gpu" && { interval: [] }) };
  const visit = (node, parent) => {
    const me = nodes.function.length;
    nodes.interval?.push(Math.ceil(node.interval));
    nodes.function.push(node.fn);
    nodes.parent.push(parent);
    nodes.self.push(node.self);
    nodes.total.push(node.total);
    const name = (child) => functions[child.fn].name;
    [...node.children.values()]
      .sort((a, b) => b.total - a.total || (name(a) < name(b) ? -1 : 1))
      .forEach((child) => visit(child, me));
  };
  visit(root, -1);
  return {
    type, unit: "ns", total: root.total, samples, strings, binaries,
    functions: {
      name: functions.map((f) => text(f.name)), binary: functions.map((f) => f.binary), kind: functions.map((f) => f.kind),
      file: functions.map((f) => text(f.file)), line: functions.map((f) => f.line), internal: functions.map((f) => f.internal),
    },
    nodes,
    one_second_in: 1,
    hidden: { threads: 0, total: 0 },
    omitted: { nodes: 0, total: 0 },
  };
}

// A call tree of exactly `count` nodes, 60 rows deep. Time and nodes are split independently, so that
// every part of the graph has frames that are much thinner than a pixel.
export function largeFlamegraph(count) {
  const next = random(11);
  const names = Array.from({ length: 20_000 }, (_, i) => `service::${"abcdefghij"[i % 10]}${i % 97}::Handler<${i}>::handle_${i.toString(36)}`);
  const binaries = Array.from({ length: 14 }, (_, i) => ({
    name: `lib${["net", "core", "db", "json", "crypto", "log", "rpc"][i % 7]}${i}.so`, path: `/usr/lib/x${i}.so`, build_id: `b1d${i}`,
  }));
  const nodes = { function: [], parent: [], self: [], total: [] };
  const grow = (parent, depth, total, budget) => {
    const me = nodes.total.length;
    nodes.function.push(parent < 0 ? -1 : Math.floor(next() * names.length));
    nodes.parent.push(parent);
    nodes.total.push(total);
    nodes.self.push(total);
    const rest = budget - 1;
    if (rest < 1) return;
    const wanted = depth >= 59 ? rest : next() < 0.55 ? 1 : 2 + Math.floor(next() * 5);
    const width = Math.min(rest, wanted);
    const parts = Array.from({ length: width }, () => next() ** 3 + 0.02).sort((a, b) => b - a);
    const sum = parts.reduce((a, b) => a + b, 0) * (1 + 0.06 * next());
    let spent = 0;
    parts.forEach((part, i) => {
      const last = i === width - 1;
      const nodesBelow = last ? rest - spent : Math.max(1, Math.min(rest - spent - (width - 1 - i), Math.floor((rest / width) * (0.5 + next()))));
      const time = Math.floor((total * part) / sum);
      spent += nodesBelow;
      nodes.self[me] -= time;
      grow(me, depth + 1, time, nodesBelow);
    });
  };
  grow(-1, 0, 1e15, count);
  return {
    type: "cpu", unit: "ns", total: nodes.total[0], samples: 190_000, strings: ["", ...names], binaries,
    functions: {
      name: names.map((_, i) => i + 1), binary: names.map((_, i) => i % binaries.length),
      kind: names.map((_, i) => (i % 14 === 3 ? "kernel" : "native")), file: names.map(() => 0), line: names.map(() => 0),
      internal: names.map(() => 0),
    },
    nodes,
    one_second_in: 1,
    hidden: { threads: 0, total: 0 },
    omitted: { nodes: 0, total: 0 },
  };
}

// A training program that lost its CPU to a build for twelve seconds, and one step that stays unexplained.
export function incidents() {
  const from_us = START_US + 300_000_000, to_us = from_us + 12_000_000;
  const shown_from_us = from_us - 12_000_000, shown_to_us = to_us + 12_000_000;
  const buckets = 300, generator = random(7);
  const strip = (metric, label, unit, quiet, loud) => ({
    metric, label, unit,
    values: Array.from({ length: buckets }, (_, i) => (i >= 100 && i < 200 ? loud : quiet) * (0.85 + 0.3 * generator())),
  });
  const part = (signal, label, before, during) => ({ signal, label, before: before * 1e6, during: during * 1e6, score: 0, sentence: "" });
  const sentence = "Steps slowed 2.9× from 01:11:40. CPU contention (0.93): the step waited for a CPU 57 % of the time (1 % before); 88 ms of each step were taken by cc1plus in /batch.slice, 7.1 ms by ld. Move the others to other CPUs (cpuset), or lower their CPU weight.";
  return {
    steps: 9000, omitted: 0,
    programs: [
      { process: "5".repeat(32), name: "calm", pid: 500, tid: 512, steps: 4000, step_ns: 50e6, between_ns: 150e6, kinds: [{ steps: 3000, mean_ns: 23e6, from_us: from_us - 100e6, to_us: from_us - 50e6 }, { steps: 1000, mean_ns: 57e6, from_us: from_us - 40e6, to_us }], parts: [{ signal: "gpu_run", label: "GPU kernels", time_ns: 50e6, sentence: "" }] },
      {
        process: "0000000000000000000000000000a411", name: "python3.11", pid: 411, tid: 0, steps: 5000, step_ns: 57e6, between_ns: 0, kinds: [],
        parts: [
          { signal: "gpu_run", label: "GPU kernels", time_ns: 35e6, sentence: "" },
          { signal: "run_queue", label: "CPU taken by others", time_ns: 13e6, sentence: "CPU contention all the time: 23 % of each step; 13 ms of each step were taken by rsync. Move the others to other CPUs (cpuset), or lower their CPU weight." },
          { signal: "cpu", label: "CPU", time_ns: 9e6, sentence: "" },
        ],
      },
    ],
    warnings: [{
      id: "2".repeat(32), indicator: "temperature", device: "3".repeat(32), from_us: from_us - 240_000_000, to_us: from_us - 60_000_000,
      sentence: "the GPU is at 71 °C and warms by 9.2 °C per minute; at 87 °C, in about 104 s, it slows itself down", incident: null, lead_us: null,
    }, {
      id: "4".repeat(32), indicator: "cpu_pressure", device: null, from_us: from_us - 3_000_000, to_us: null,
      sentence: "CPU pressure (PSI, some) 34 % over the last 5 s, 4 % over the minute before", incident: "1".repeat(32), lead_us: 3_000_000,
    }],
    incidents: [{
      id: "1".repeat(32), process: "0000000000000000000000000000a411", name: "python3.11", pid: 411, tid: 0, from_us, to_us, slowdown: 2.9,
      cause: "cpu_contention", confidence: 0.93, sentence, before_is_later: false,
      account: [part("cpu", "CPU", 9, 10), part("gpu_run", "GPU kernels", 41, 40), part("loader", "Own processes", 6, 9),
        part("run_queue", "CPU taken by others", 0.4, 96), part("unexplained", "Unexplained", 0.6, 4)],
      causes: [{ signal: "cpu_contention", label: "cpu_contention", before: null, during: 0.94, score: 2.6, sentence: "CPU contention (0.93): the step waited for a CPU" },
        { signal: "slow_data_loading", label: "slow_data_loading", before: null, during: 0.03, score: -2.2, sentence: "Slow data loading inside the program (0.10): the launch thread waited for the program's own processes (python3), which were running, 6 % of the time (10 % before)" }],
      evidence: [{ signal: "host.pressure.cpu", label: "CPU pressure", before: 0.08, during: 0.97, score: 0.5, sentence: "CPU pressure: tasks waited for a CPU longer than before" }],
      shown_from_us, shown_to_us,
      strips: [strip("step", "Step time", "ns", 57e6, 159e6), strip("thread.running", "Running", "cores", 0.6, 0.3), strip("thread.run_queue", "Run queue", "threads", 0.01, 1.2)],
    }],
  };
}

// The account of GPU time, as sentences.
function usageOf(processes, devices, busy_h, idle_h, unobserved_h, interval, sampled) {
  const [busy_ns, idle_ns, unobserved_ns] = [busy_h, idle_h, unobserved_h].map((hours) => hours * 3600e9);
  const accountable_ns = busy_ns + idle_ns + unobserved_ns;
  const value = busy_ns + idle_ns > 0 ? busy_ns / (busy_ns + idle_ns) : null;
  const busy_share = value === null ? null : { value, low: value - interval, high: value + interval };
  return { processes, devices, held_ns: accountable_ns, accountable_ns, busy_ns, idle_ns, without_process_ns: 0, unobserved_ns, busy_share, sampled_utilization: sampled, idle_cost: null };
}

export function usage(by, hasGpu, coverage) {
  const range = { from_us: START_US, to_us: START_US + LENGTH_US, by, simulated: false, gpus: 8, labels: ["team"], omitted: 0, ...(coverage && { coverage }) };
  if (!hasGpu) return { ...range, gpus: 0, total: usageOf(0, 0, 0, 0, 0, 0, null), groups: [] };
  return {
    ...range,
    total: { ...usageOf(14, 8, 90.2, 80.1, 7, 0.02, 0.52), without_process_ns: 12 * 3600e9 },
    groups: [
      { name: by === "job" ? "4711" : "pod ml-research/llama-pretrain-worker-0", ...usageOf(8, 8, 88.1, 30.4, 0, 0, 0.74) },
      { name: by === "job" ? "" : "pod notebooks/jupyter-anna", ...usageOf(1, 1, 0.4, 40.6, 0, 0, 0.01), without_process_ns: 12 * 3600e9 },
      { name: "container 3f4e9a0b1c2d", ...usageOf(4, 2, 1.7, 9.1, 5.3, 0.04, null) },
      { name: "user 1000", ...usageOf(1, 1, 0, 0, 1.7, 0, 0.22) },
    ],
  };
}

export function summary(hasGpu) {
  if (!hasGpu) return { gpu: null };
  return {
    gpu: {
      devices: 2, busy_ns: 540e9, observed_ns: 1000e9, partial_ns: 0, kernels: 9000 * 900, sm_active: 41, tensor_active: 12,
      busy: "SM activity 41 %, tensor pipe 12 %; 31 % sm90_xmma_gemm_bf16 ← train.py:88 step, 12 % multi_tensor_apply_kernel ← train.py:93 step",
      idle: "61 % of the CPU time during that was in train.py:41 load_batch → zlib_decompress", idle_cause: "cpu",
      hottest: [], while_idle: [], waiting_in: [], launch_threads_in: [],
    },
  };
}

// A process and its thread above all stacks of a flame graph.
export function addRoots(json) {
  const { functions, nodes, strings } = json;
  const add = (name, kind) => {
    functions.name.push(strings.push(name) - 1);
    functions.binary.push(-1);
    functions.kind.push(kind);
    functions.file.push(0);
    functions.line.push(0);
    functions.internal.push(0);
    return functions.name.length - 1;
  };
  const roots = [add("python3 train.py --data /mnt/data (pid 411)", "process"), add("main thread", "thread")];
  const { total } = json;
  nodes.function = [-1, ...roots, ...nodes.function.slice(1)];
  nodes.parent = [-1, 0, 1, ...nodes.parent.slice(1).map((parent) => parent + 2)];
  for (const [key, value] of [["self", 0], ["total", total], ["interval", 0]]) if (nodes[key]) nodes[key] = [nodes[key][0], value, value, ...nodes[key].slice(1)];
}
