// SPDX-License-Identifier: Apache-2.0
// Every table of a recording, as an independent reader of Parquet finds it and as `gpusonde query` shows it.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { asyncBufferFromFile, parquetReadObjects } from 'hyparquet';
import { compressors } from 'hyparquet-compressors';

const build = process.env.GPUSONDE_BUILD ?? path.resolve('../../../build/release');
const gpusonde = process.env.GPUSONDE ?? path.join(build, 'bin/gpusonde');

// A value as text, whichever type carries it; an id as 32 hex digits.
function plain(value) {
  if (value instanceof Uint8Array) return Buffer.from(value).toString('hex');
  if (Array.isArray(value)) return value.map(plain);
  return value === null || value === undefined ? null : String(value);
}

const sorted = (rows) => rows
  .map((row) => JSON.stringify(Object.entries(row).map(([column, value]) => [column, plain(value)]))).sort();

// JSON.parse rounds whole numbers beyond 2^53, so they become texts first.
const parse = (json) => JSON.parse(json.replace(/(?<=[:[,]\s*)(-?\d{15,})(?=\s*[,\]}])/g, '"$1"'));

async function check(recording, table, file) {
  const rows = await parquetReadObjects({ file: await asyncBufferFromFile(file), compressors });
  const json = execFileSync(gpusonde, ['query', recording, `SELECT * FROM ${table}`, '--format', 'json']).toString();
  assert.deepEqual(sorted(rows), sorted(parse(json)));
  return rows.length;
}

const folder = mkdtempSync(path.join(tmpdir(), 'gpusonde-parquet-'));
let passed = 0;
let failed = 0;
let rows = 0;
try {
  const recording = path.join(folder, 'a.sonde');
  const tables = path.join(folder, 'tables');
  execFileSync(path.join(build, 'tests/sample_recording'), [recording, '--gpu']);
  execFileSync(gpusonde, ['export', recording, '--format', 'parquet', '-o', tables], { stdio: 'pipe' });
  for (const name of readdirSync(tables)) {
    const table = path.basename(name, '.parquet');
    try {
      rows += await check(recording, table, path.join(tables, name));
      passed += 1;
    } catch (error) {
      failed += 1;
      console.log(`failed ${table}: ${error.stack}`);
    }
  }
  assert.ok(passed + failed > 25 && rows > 90, `${passed + failed} tables, ${rows} rows`);
} catch (error) {
  failed += 1;
  console.log(`failed: ${error.stack}`);
}
rmSync(folder, { recursive: true, force: true });
console.log(`${passed} passed, ${failed} failed, 0 skipped`);
process.exit(failed ? 1 : 0);
