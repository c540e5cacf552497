// SPDX-License-Identifier: Apache-2.0
// Our OTLP, read by others: metrics by the decoder that OpenTelemetry's JavaScript SDK generated from the specification;
// profiles, which that SDK doesn't have, by protobufjs and the declaration below, written from release 1.10.0 of
// opentelemetry-proto and not from ours.
import assert from 'node:assert/strict';
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { gunzipSync } from 'node:zlib';
import protobuf from 'protobufjs';
import generated from '@opentelemetry/otlp-transformer/build/src/generated/root.js';

const build = process.env.GPUSONDE_BUILD ?? path.resolve('../../../build/release');
const gpusonde = process.env.GPUSONDE ?? path.join(build, 'bin/gpusonde');
const simgpu = path.join(build, 'bin/simgpu');

const MetricsRequest = generated.opentelemetry.proto.collector.metrics.v1.ExportMetricsServiceRequest;
const ProfilesRequest = protobuf.parse(`
  syntax = "proto3";
  package opentelemetry;
  message ExportProfilesServiceRequest { repeated ResourceProfiles resource_profiles = 1; ProfilesDictionary dictionary = 2; }
  message ProfilesDictionary {
    repeated Mapping mapping_table = 1; repeated Location location_table = 2; repeated Function function_table = 3;
    repeated Link link_table = 4; repeated string string_table = 5; repeated KeyValueAndUnit attribute_table = 6;
    repeated Stack stack_table = 7;
  }
  message ResourceProfiles { Resource resource = 1; repeated ScopeProfiles scope_profiles = 2; string schema_url = 3; }
  message Resource { repeated KeyValue attributes = 1; uint32 dropped_attributes_count = 2; }
  message ScopeProfiles { InstrumentationScope scope = 1; repeated Profile profiles = 2; string schema_url = 3; }
  message InstrumentationScope {
    string name = 1; string version = 2; repeated KeyValue attributes = 3; uint32 dropped_attributes_count = 4;
  }
  message KeyValue { string key = 1; AnyValue value = 2; }
  message AnyValue {
    oneof value { string string_value = 1; bool bool_value = 2; int64 int_value = 3; double double_value = 4; bytes bytes_value = 7; }
  }
  message Profile {
    ValueType sample_type = 1; repeated Sample samples = 2; fixed64 time_unix_nano = 3; uint64 duration_nano = 4;
    ValueType period_type = 5; int64 period = 6; bytes profile_id = 7; uint32 dropped_attributes_count = 8;
    string original_payload_format = 9; bytes original_payload = 10; repeated int32 attribute_indices = 11;
  }
  message Link { bytes trace_id = 1; bytes span_id = 2; }
  message ValueType { int32 type_strindex = 1; int32 unit_strindex = 2; }
  message Sample {
    int32 stack_index = 1; repeated int32 attribute_indices = 2; int32 link_index = 3; repeated int64 values = 4;
    repeated fixed64 timestamps_unix_nano = 5;
  }
  message Mapping {
    uint64 memory_start = 1; uint64 memory_limit = 2; uint64 file_offset = 3; int32 filename_strindex = 4;
    repeated int32 attribute_indices = 5;
  }
  message Stack { repeated int32 location_indices = 1; }
  message Location { int32 mapping_index = 1; uint64 address = 2; repeated Line lines = 3; repeated int32 attribute_indices = 4; }
  message Line { int32 function_index = 1; int64 line = 2; int64 column = 3; }
  message Function { int32 name_strindex = 1; int32 system_name_strindex = 2; int32 filename_strindex = 3; int64 start_line = 4; }
  message KeyValueAndUnit { int32 key_strindex = 1; AnyValue value = 2; int32 unit_strindex = 3; }
`).root.resolveAll().lookupType('opentelemetry.ExportProfilesServiceRequest');

// Of an AnyValue; `value` is the name of its field that is set.
const valueOf = (any) => (typeof any[any.value] === 'object' ? Number(any[any.value]) : any[any.value]);
const attributesOf = (list) => Object.fromEntries(list.map(({ key, value }) => [key, valueOf(value)]));

// A request of profiles, checked as the specification describes it: the first entry of every table is empty, every index is
// in its table, no table has an entry twice, and there is no field that the declaration lacks.
function profilesOf(bytes) {
  const request = ProfilesRequest.decode(bytes);
  assert.equal(ProfilesRequest.encode(request).finish().length, bytes.length, 'no unknown field');
  const tables = request.dictionary;
  const within = (table, index) => assert.ok(index >= 0 && index < tables[table].length, `${table}[${index}]`);
  for (const [table, entries] of Object.entries(ProfilesRequest.toObject(request, { longs: String }).dictionary)) {
    assert.deepEqual(entries[0], table === 'stringTable' ? '' : {}, `${table}[0]`);
    if (table === 'stringTable' || table === 'attributeTable')
      assert.equal(new Set(entries.map((entry) => JSON.stringify(entry))).size, entries.length, `${table} has an entry twice`);
  }
  for (const mapping of tables.mappingTable) {
    within('stringTable', mapping.filenameStrindex);
    mapping.attributeIndices.forEach((index) => within('attributeTable', index));
  }
  for (const location of tables.locationTable) {
    within('mappingTable', location.mappingIndex);
    location.lines.forEach(({ functionIndex }) => within('functionTable', functionIndex));
    location.attributeIndices.forEach((index) => within('attributeTable', index));
  }
  for (const made of tables.functionTable)
    [made.nameStrindex, made.systemNameStrindex, made.filenameStrindex].forEach((index) => within('stringTable', index));
  for (const attribute of tables.attributeTable) within('stringTable', attribute.keyStrindex);
  for (const stack of tables.stackTable) stack.locationIndices.forEach((index) => within('locationTable', index));

  const described = (indices) => Object.fromEntries(indices.map((index) => {
    within('attributeTable', index);
    const { keyStrindex, value } = tables.attributeTable[index];
    return [tables.stringTable[keyStrindex], valueOf(value)];
  }));
  const framesOf = (index) => tables.stackTable[index].locationIndices.flatMap((location) => {
    const { lines, attributeIndices } = tables.locationTable[location];
    const type = described(attributeIndices)['profile.frame.type'];
    return lines.map(({ functionIndex }) => ({ name: tables.stringTable[tables.functionTable[functionIndex].nameStrindex], type }));
  });
  return request.resourceProfiles.flatMap(({ resource, scopeProfiles }) => scopeProfiles.flatMap(({ profiles }) =>
    profiles.map((profile) => ({
      resource: attributesOf(resource.attributes),
      type: [profile.sampleType.typeStrindex, profile.sampleType.unitStrindex].map((index) => tables.stringTable[index]).join('/'),
      attributes: described(profile.attributeIndices),
      samples: profile.samples.map(({ stackIndex, attributeIndices, values }) => {
        within('stackTable', stackIndex);
        assert.equal(values.length, 1);
        return { frames: framesOf(stackIndex), attributes: described(attributeIndices), value: Number(values[0]) };
      }),
    }))));
}

function exported(folder, options, flags) {
  const recording = path.join(folder, 'a.sonde');
  execFileSync(path.join(build, 'tests/sample_recording'), [recording, ...options]);
  execFileSync(gpusonde, ['export', recording, '--format', 'otlp', ...flags], { stdio: 'pipe' });
  const folded = (value) => execFileSync(gpusonde, ['export', recording, '--format', 'folded', '--value', value, ...flags],
    { encoding: 'utf8' }).trimEnd().split('\n').reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0);
  return { profiles: profilesOf(gunzipSync(readFileSync(path.join(folder, 'a.otlp.gz')))), folded };
}

const total = ({ samples }) => samples.reduce((sum, { value }) => sum + value, 0);

function cpuSamplesAreThoseOfOurFoldedStacks(folder) {
  const { profiles, folded } = exported(folder, [], []);
  const [times, counts] = profiles;
  assert.deepEqual(profiles.map(({ type }) => type), ['cpu/nanoseconds', 'samples/count']);
  assert.equal(total(counts), folded('samples'));
  assert.equal(total(times), folded('us') * 1000);
  const loading = times.samples.find(({ attributes }) => attributes['thread.name'] === 'loader');
  assert.equal(loading.attributes['process.pid'], 411);
  assert.equal(loading.attributes['process.executable.name'], 'train');
  assert.equal(loading.frames.at(-1).name, 'main');
  const types = new Set(times.samples.flatMap(({ frames }) => frames.map(({ type }) => type)));
  assert.deepEqual([...types].filter(Boolean).sort(), ['jit', 'kernel', 'native']);
}

function gpuTimeIsThatOfOurFoldedStacks(folder) {
  const { profiles, folded } = exported(folder, ['--gpu'], ['--type', 'gpu']);
  const [times, counts] = profiles;
  assert.deepEqual(profiles.map(({ type }) => type), ['gpu_kernel_time/nanoseconds', 'gpu_operations/count']);
  assert.equal(total(times), folded('us') * 1000);
  assert.equal(total(counts), folded('samples'));
  const gemm = times.samples.find(({ frames }) => frames[0]?.name === 'gemm(int)');
  assert.equal(gemm.frames[0].type, 'cuda');
  assert.equal(gemm.attributes['gpusonde.cuda.stream'], 7);
  assert.match(times.attributes['gpusonde.cuda.device.0'], /\(simulated\)$/);
}

// What `up` sends to a receiver, until `enough` says so: {metrics, profiles}, decoded.
async function received(folder, enough) {
  const environment = { ...process.env, SIMGPU_MACHINE: `otlp-${process.pid}`,
    LD_LIBRARY_PATH: execFileSync(simgpu, ['env'], { encoding: 'utf8' }).trim() };
  const metrics = [];
  const profiles = [];
  const server = http.createServer((request, response) => {
    const parts = [];
    request.on('data', (part) => parts.push(part));
    request.on('end', () => {
      const bytes = gunzipSync(Buffer.concat(parts));
      if (request.url === '/v1/metrics') metrics.push(bytes);
      if (request.url === '/v1development/profiles') profiles.push(bytes);
      response.writeHead(200, { 'Content-Type': 'application/x-protobuf' }).end();
    });
  });
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  const injected = { ...environment, CUDA_INJECTION64_PATH: path.join(build, 'lib/libgpusonde-inject.so') };
  const up = spawn(gpusonde, ['up', '--state', path.join(folder, 'state'), '--listen', '127.0.0.1:0', '--no-open',
    '--otlp', `http://127.0.0.1:${server.address().port}`, '--otlp-metrics-every', '1', '--otlp-profiles-every', '2'],
  { env: environment, stdio: ['ignore', 'ignore', 'inherit'] });
  const work = spawn(path.join(build, 'bin/hpc'), ['--seconds', '60'], { env: injected, stdio: 'ignore' });
  try {
    const deadline = Date.now() + 120_000;
    let found = {};
    do {
      await new Promise((done) => setTimeout(done, 500));
      found = { metrics: metrics.map((bytes) => MetricsRequest.decode(bytes)), profiles: profiles.flatMap(profilesOf) };
    } while (!enough(found) && Date.now() < deadline);
    return found;
  } finally {
    for (const process of [work, up]) {
      process.kill('SIGKILL');
      if (process.exitCode === null && process.signalCode === null) await new Promise((done) => process.on('exit', done));
    }
    spawnSync(simgpu, ['reset'], { env: environment });
    server.closeAllConnections();
    server.close();
  }
}

const metricsIn = (request) => Object.fromEntries(request.resourceMetrics.flatMap(({ scopeMetrics }) =>
  scopeMetrics.flatMap((scope) => scope.metrics.map((metric) => [metric.name, metric]))));

async function whatUpSendsIsDecoded(folder) {
  if (spawnSync(gpusonde, ['doctor', '--format', 'json']).status !== 0) return 'gpusonde can\'t record on this machine';
  const { metrics, profiles } = await received(folder, ({ metrics: sent, profiles: some }) =>
    sent.some((request) => metricsIn(request)['hw.gpu.utilization']) &&
    ['cpu/nanoseconds', 'gpu_kernel_time/nanoseconds'].every((type) => some.some((profile) => profile.type === type)));
  const request = metrics.find((one) => metricsIn(one)['hw.gpu.utilization']);
  assert.ok(request, 'a request has readings of the GPU');
  const resource = attributesOf(request.resourceMetrics[0].resource.attributes);
  assert.equal(resource['service.name'], 'gpusonde');
  assert.ok(resource['host.name']);
  const found = metricsIn(request);
  const expected = { 'hw.gpu.utilization': ['1', 'gauge'], 'hw.gpu.memory.usage': ['By', 'sum'], 'hw.gpu.memory.limit': ['By', 'sum'],
    'hw.gpu.memory.utilization': ['1', 'gauge'], 'hw.energy': ['J', 'sum'], 'hw.power': ['W', 'gauge'],
    'hw.temperature': ['Cel', 'gauge'], 'hw.errors': ['{error}', 'sum'], 'gpusonde.gpu.clock.sm': ['MHz', 'gauge'],
    gpusonde_gpu_kernels: ['', 'sum'], gpusonde_samples: ['', 'sum'] };
  for (const [name, [unit, kind]] of Object.entries(expected)) {
    assert.ok(found[name], name);
    assert.deepEqual([found[name].unit ?? '', found[name].data], [unit, kind], name);
  }
  const [point] = found['hw.gpu.utilization'].gauge.dataPoints;
  const attributes = attributesOf(point.attributes);
  assert.match(attributes['hw.id'], /^GPU-/);
  assert.equal(attributes['hw.type'], 'gpu');
  assert.ok(point.asDouble >= 0 && point.asDouble <= 1);
  assert.ok(Math.abs(Number(point.timeUnixNano) / 1e6 - Date.now()) < 300_000);
  assert.equal(found['hw.energy'].sum.isMonotonic, true);
  assert.ok(!found['hw.gpu.memory.usage'].sum.isMonotonic);
  assert.equal(found['hw.energy'].sum.aggregationTemporality, 2);

  const types = new Set(profiles.map(({ type }) => type));
  assert.ok(types.has('cpu/nanoseconds') && types.has('samples/count'), [...types].join());
  const gpu = profiles.find(({ type }) => type === 'gpu_kernel_time/nanoseconds');
  assert.ok(gpu, 'GPU time is there');
  assert.ok(gpu.samples.some(({ frames, attributes: of }) => frames[0]?.type === 'cuda' && of['process.executable.name'] === 'hpc'));
  assert.equal(gpu.resource['host.name'], resource['host.name']);
  return undefined;
}

let failed = 0;
let skipped = 0;
const tests = [cpuSamplesAreThoseOfOurFoldedStacks, gpuTimeIsThatOfOurFoldedStacks, whatUpSendsIsDecoded];
for (const test of tests) {
  const folder = mkdtempSync(path.join(tmpdir(), 'gpusonde-otlp-'));
  try {
    const reason = await test(folder);
    skipped += reason ? 1 : 0;
    console.log(reason ? `skipped ${test.name}: ${reason}` : `passed ${test.name}`);
  } catch (error) {
    failed += 1;
    console.log(`failed ${test.name}: ${error.stack}`);
  }
  rmSync(folder, { recursive: true, force: true });
}
console.log(`${tests.length - failed - skipped} passed, ${failed} failed, ${skipped} skipped`);
process.exit(failed ? 1 : 0);
