// SPDX-License-Identifier: Apache-2.0
// Serves speedscope and a profile of ours from this process on loopback, opens both in Chromium, and checks what is
// displayed.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { chromium } from 'playwright-core';

const build = process.env.GPUSONDE_BUILD ?? path.resolve('../../../build/release');
const gpusonde = process.env.GPUSONDE ?? path.join(build, 'bin/gpusonde');
const speedscope = path.resolve('node_modules/speedscope/dist/release');
const types = { '.css': 'text/css', '.html': 'text/html', '.js': 'text/javascript', '.json': 'application/json' };
const browserFlags = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
  '--disable-background-networking', '--disable-component-update', '--disable-sync'];

function makeProfile(folder) {
  const recording = path.join(folder, 'a.sonde');
  const profile = path.join(folder, 'a.speedscope.json');
  execFileSync(path.join(build, 'tests/sample_recording'), [recording]);
  execFileSync(gpusonde, ['export', recording, '--format', 'speedscope', '-o', profile], { stdio: 'pipe' });
  return readFileSync(profile);
}

// Answers /profile with the profile, other paths with speedscope's files.
async function serve(profile) {
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url, 'http://localhost');
    if (pathname === '/profile') return response.writeHead(200, { 'content-type': types['.json'] }).end(profile);
    try {
      const file = path.join(speedscope, path.normalize(pathname));
      const content = readFileSync(file);
      response.writeHead(200, { 'content-type': types[path.extname(file)] ?? 'application/octet-stream' }).end(content);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise((listening) => server.listen(0, '127.0.0.1', listening));
  return server;
}

// A page that shows the profile; `complaints` collects errors and must stay empty.
async function open(browser, origin, complaints) {
  const page = await browser.newPage();
  page.on('pageerror', (error) => complaints.push(String(error)));
  page.on('dialog', (dialog) => { complaints.push(dialog.message()); dialog.dismiss(); });
  page.on('console', (message) => { if (message.type() === 'error') complaints.push(message.text()); });
  page.on('request', (request) => {
    if (!request.url().startsWith(origin) && !/^(data|blob):/.test(request.url())) complaints.push(request.url());
  });
  await page.goto(`${origin}/index.html#profileURL=${encodeURIComponent(`${origin}/profile`)}`);
  await page.getByText('a.sonde').first().waitFor({ timeout: 15_000 });
  return page;
}

// The rows of the sandwich view's table, as shown: {name: [total, self]}.
async function sandwich(page) {
  await page.getByText('Sandwich').click();
  await page.getByText('load_batch(int)').first().waitFor({ timeout: 15_000 });
  const rows = await page.locator('tr').allInnerTexts();
  const cells = rows.map((row) => row.split('\t').map((cell) => cell.trim()));
  return Object.fromEntries(cells.map(([total, self, name]) => [name, { self, total }]));
}

const tests = {
  'the profile is called by its recording': async (page) => {
    assert.match(await page.title(), /a\.sonde/);
  },
  'functions have the time of all threads': async (page) => {
    const functions = await sandwich(page);
    assert.match(functions['inflate'].self, /^300\.00ms/);
    assert.match(functions['inflate'].total, /^400\.00ms/);
    assert.match(functions['main'].total, /^590\.00ms/);
    assert.match(functions['copy_bytes'].total, /^300\.00ms/);
    assert.ok('[libz.so.1+0x9999]' in functions);
  },
  'every thread is a profile of its own': async (page) => {
    await sandwich(page);
    await page.keyboard.press('n');
    await page.keyboard.press('n');
    await page.getByText('train (pid 411) / loader (tid 412)').first().waitFor({ timeout: 15_000 });
    assert.match((await sandwich(page))['inflate'].total, /^300\.00ms/);
  },
};

const folder = mkdtempSync(path.join(tmpdir(), 'gpusonde-speedscope-'));
const server = await serve(makeProfile(folder));
const origin = `http://127.0.0.1:${server.address().port}`;
const browser = await chromium.launch({ executablePath: '/usr/bin/chromium-headless-shell', args: browserFlags });
let failed = 0;
for (const [name, test] of Object.entries(tests)) {
  try {
    const complaints = [];
    const page = await open(browser, origin, complaints);
    await test(page);
    assert.deepEqual(complaints, []);
    await page.close();
    console.log(`passed ${name}`);
  } catch (error) {
    ++failed;
    console.log(`failed ${name}: ${error.stack}`);
  }
}
await browser.close();
server.close();
rmSync(folder, { recursive: true });
console.log(`${Object.keys(tests).length - failed} passed, ${failed} failed, 0 skipped`);
process.exit(failed ? 1 : 0);
