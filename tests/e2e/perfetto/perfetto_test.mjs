// SPDX-License-Identifier: Apache-2.0
// Our Perfetto traces, decoded by protobufjs; and src/exporters/proto/perfetto.proto, which says how, read against a
// trace that Chromium wrote.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import protobuf from 'protobufjs';

const build = process.env.GPUSONDE_BUILD ?? path.resolve('../../../build/release');
const gpusonde = process.env.GPUSONDE ?? path.join(build, 'bin/gpusonde');
const chromiumFlags = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
  '--disable-background-networking', '--disable-component-update', '--disable-sync'];

const Trace = protobuf.loadSync(path.resolve('../../../src/exporters/proto/perfetto.proto'))
  .lookupType('gpusonde.exporters.perfetto.Trace');
const { TYPE_SLICE_BEGIN: BEGIN, TYPE_SLICE_END: END } =
  Trace.root.lookupEnum('gpusonde.exporters.perfetto.TrackEvent.Type').values;

// The track events of a file, with the texts that they refer to by id, and the descriptions of its tracks. Each sequence
// has ids of its own.
function read(file) {
  const trace = Trace.decode(readFileSync(file));
  const events = [];
  const tracks = new Map();
  const sequences = new Map();
  for (const packet of trace.packet) {
    const sequence = packet.trustedPacketSequenceId;
    if (!sequences.has(sequence) || packet.sequenceFlags & 1)
      sequences.set(sequence, { eventNames: new Map(), eventCategories: new Map(), debugAnnotationNames: new Map() });
    const texts = sequences.get(sequence);
    for (const kind of Object.keys(texts))
      for (const { iid, name } of packet.internedData?.[kind] ?? []) texts[kind].set(String(iid), name);
    if (packet.trackDescriptor) tracks.set(String(packet.trackDescriptor.uuid), packet.trackDescriptor);
    const event = packet.trackEvent;
    if (!event) continue;
    events.push({
      type: event.type,
      time: BigInt(packet.timestamp.toString()),
      track: String(event.trackUuid),
      name: String(event.nameIid) === '0' ? event.name : texts.eventNames.get(String(event.nameIid)),
      categories: event.categoryIids.map((iid) => texts.eventCategories.get(String(iid))),
      arguments: event.debugAnnotations.filter(({ nameIid }) => String(nameIid) !== '0')
        .map(({ nameIid }) => texts.debugAnnotationNames.get(String(nameIid))),
      flows: event.flowIds.map(String),
    });
  }
  return { events, tracks };
}

function ourTraceIsDecoded(folder) {
  const recording = path.join(folder, 'a.sonde');
  execFileSync(path.join(build, 'tests/sample_recording'), [recording, '--gpu']);
  execFileSync(gpusonde, ['export', recording, '--format', 'perfetto'], { stdio: 'pipe' });
  const { events, tracks } = read(path.join(folder, 'a.pftrace'));
  const begins = events.filter(({ type }) => type === BEGIN);
  assert.deepEqual(begins.map(({ name }) => name),
    ['gemm(int)', 'Memcpy HtoD (Unknown -> Unknown)', 'relu', 'cudaLaunchKernel']);
  assert.deepEqual(begins.map(({ categories }) => categories.join()), ['kernel', 'gpu_memcpy', 'kernel', 'cuda_runtime']);
  assert.deepEqual(begins[1].arguments, ['context', 'correlation', 'bytes']);
  const [gemm, , , launch] = begins;
  assert.deepEqual(gemm.flows, launch.flows);
  assert.equal(tracks.get(gemm.track).name, 'stream 7');
  assert.equal(tracks.get(String(tracks.get(gemm.track).parentUuid)).name, 'GPU 0: Simulated GPU');
  assert.equal(tracks.get(launch.track).thread.pid, 411);
  const end = events[events.indexOf(gemm) + 1];
  assert.equal(end.type, END);
  assert.equal(end.time - gemm.time, 500_000_000n);
}

function chromiumsTraceIsRead(folder) {
  const file = path.join(folder, 'chromium.pftrace');
  execFileSync('/usr/bin/chromium-headless-shell', [...chromiumFlags, `--user-data-dir=${path.join(folder, 'profile')}`,
    '--trace-startup=*', '--trace-startup-format=proto', `--trace-startup-file=${file}`, '--dump-dom', 'about:blank'],
  { stdio: 'pipe', timeout: 60_000 });
  const { events, tracks } = read(file);
  const begins = events.filter(({ type }) => type === BEGIN);
  assert.ok(begins.length > 1000, `${begins.length} slices begin`);
  assert.ok(events.filter(({ type }) => type === END).length > begins.length / 2);
  // All ids lead to texts, and those are what Chromium is known to say.
  for (const event of begins) assert.ok(!event.categories.includes(undefined) && !event.arguments.includes(undefined));
  assert.ok(begins.some(({ categories }) => categories.includes('toplevel')));
  assert.ok(begins.some(({ name }) => name === 'ThreadControllerImpl::RunTask'));
  assert.ok(events.some(({ flows }) => flows.length > 0));
  const threads = [...tracks.values()].filter(({ thread }) => thread).map(({ thread }) => thread.threadName);
  assert.ok(threads.includes('CrBrowserMain'), threads.join());
  assert.ok([...tracks.values()].some(({ process }) => process?.pid > 0));
}

let failed = 0;
const tests = [ourTraceIsDecoded, chromiumsTraceIsRead];
for (const test of tests) {
  const folder = mkdtempSync(path.join(tmpdir(), 'gpusonde-perfetto-'));
  try {
    test(folder);
    console.log(`passed ${test.name}`);
  } catch (error) {
    failed += 1;
    console.log(`failed ${test.name}: ${error.stack}`);
  }
  rmSync(folder, { recursive: true, force: true });
}
console.log(`${tests.length - failed} passed, ${failed} failed, 0 skipped`);
process.exit(failed ? 1 : 0);
