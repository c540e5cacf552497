// SPDX-License-Identifier: Apache-2.0
import { createHash } from "node:crypto";
import { createReadStream, statSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";
import * as data from "./fixture-data.mjs";
import * as timelines from "./fixture-timeline.mjs";

// Serves docs/api.md over generated data, and the built UI.
//
//   node tests/fixture-server.mjs [--scenario NAME] [--nodes N] [--port P]
//
// Scenarios: realistic, gpu, large, empty, error, partial, live, slow, simulated, hosts, cluster, tokens, ranks,
// trace.

const DIST = join(fileURLToPath(import.meta.url), "../../dist");
const TYPES = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css" };
const END_US = data.START_US + data.LENGTH_US;

// Of the scenario `hosts`.
const HOSTS = [
  { name: "train-07", last_seen_us: Date.now() * 1000, silent: false, gpus: 8, busy: 0.54, incidents: 2, held_ns: 192 * 3600e9, idle_ns: 48 * 3600e9, bytes: 3.2e9, error: "" },
  { name: "train-08", last_seen_us: Date.now() * 1000 - 3600e6, silent: true, gpus: null, busy: null, incidents: null, held_ns: null, idle_ns: null, bytes: 1.1e9, error: "no" },
];

// Of the scenario `cluster`: a few are silent, slow or wasted.
const CLUSTER = Array.from({ length: 200 }, (_, i) => ({
  name: `node-${String(i).padStart(3, "0")}`,
  last_seen_us: Date.now() * 1000 - (i % 67 === 5 ? 7200e6 : (i % 50) * 1e6),
  silent: i % 67 === 5,
  gpus: 8,
  busy: ((i * 37) % 101) / 100,
  incidents: i % 23 === 7 ? 1 + (i % 4) : 0,
  held_ns: 192 * 3600e9,
  idle_ns: ((i * 53) % 97) * 1.9 * 3600e9,
  bytes: (1000 + ((i * 131) % 3000)) * 1e6,
  error: "",
}));

const HOST_INCIDENTS = [
  { host: "train-08", id: "1".repeat(32), name: "hpc", pid: 411, from_us: Date.now() * 1000 - 60e6, to_us: null, slowdown: 2.24, cause: "cpu_contention", confidence: 0.9, sentence: "Another program took the CPU." },
  { host: "train-07", id: "2".repeat(32), name: "train", pid: 7, from_us: Date.now() * 1000 - 600e6, to_us: Date.now() * 1000 - 500e6, slowdown: 1.6, cause: "abstain", confidence: 0, sentence: "The cause is not clear." },
];

const HOST_NOTICES = ["Rows of train-09 are refused: this server has 2 hosts already, its limit; start it with a larger --max-hosts, or stop it and delete the folder of a host that is gone in /data/gpusonde/hosts."];

const COVERAGE = { hosts: 2, until_us: Date.now() * 1000 - 90e6, gaps: [{ host: "train-08", why: "not read yet" }], gaps_omitted: 0 };

const ofServe = ({ scenario }) => scenario === "hosts" || scenario === "cluster";

class Refusal extends Error {}

function readSelection(params, allowed) {
  const selection = {};
  for (const [key, value] of params) {
    if (!allowed.includes(key)) throw new Refusal(`unknown parameter ${key}; this endpoint takes ${allowed.join(", ")}`);
    if (["from_us", "to_us", "base_from_us", "base_to_us", "tid", "buckets", "columns", "stream", "while_gpu_idle", "roots", "helper_threads"].includes(key)) {
      if (!/^\d+$/.test(value)) throw new Refusal(`${key} is not a whole number: ${value}`);
      selection[key] = Number(value);
    } else {
      selection[key] = value;
    }
  }
  if (selection.process !== undefined && !/^[0-9a-f]{32}(,[0-9a-f]{32}){0,99}$/.test(selection.process)) throw new Refusal("process is not 32 hex digits, or up to 100 of them with commas between them");
  if (selection.tid !== undefined && selection.process?.length !== 32) throw new Refusal("tid needs process");
  if (selection.stream !== undefined && !selection.device) throw new Refusal("stream needs device");
  if (selection.wait !== undefined && selection.type !== "off_cpu") throw new Refusal("wait is for type=off_cpu");
  if (["gpu", "off_cpu"].includes(selection.type) && selection.while_gpu_idle) throw new Refusal("while_gpu_idle is for type=cpu");
  return selection;
}

const SELECTION = ["from_us", "to_us", "process", "tid", "filter", "device", "stream", "while_gpu_idle"];

// Starts a server on a free port (or the one given) and resolves to { url, close, requests, unchanged, state };
// `unchanged` are the requests answered with a 304. `state` may be changed while it runs:
// { scenario, nodes, delayMs, down, failing, quiet, signedIn, timeline }; while `quiet`, no data arrives; `timeline` answers
// for the generated one. In `tokens`, the token
// "good" signs in.
export async function startFixture({ scenario = "realistic", nodes = 200_000, port = 0, delayMs = 0 } = {}) {
  const state = { scenario, nodes, delayMs, down: false, failing: "", signedIn: false };
  const requests = [];
  const unchanged = [];
  const large = new Map();
  // In `live`, each request for the overview adds 5 s of data.
  let until = END_US;
  if (scenario === "live") until = data.START_US + data.LENGTH_US / 3;

  const overview = (host) => {
    const serve = ofServe(state);
    const empty = state.scenario === "empty" || (serve && host === null);
    const partial = state.scenario === "partial";
    const live = ["live", "tokens"].includes(state.scenario) || empty || serve;
    if (state.scenario === "live" && !state.quiet) until = Math.min(END_US, until + 5e6);
    return {
      version: "0.1.0", mode: serve ? "serve" : live ? "up" : "view", live, silent: false, title: host ?? "train-07", simulated: ["gpu", "simulated", "partial"].includes(state.scenario),
      inject_library: live && !serve ? "/opt/gpu sonde/lib/libgpusonde-inject.so" : null,
      from_us: empty ? null : data.START_US, to_us: empty ? null : until, cpus: 2,
      sources: [{ id: "0".repeat(32), host: host ?? "train-07", kind: "agent", hz: 19 }],
      samples: empty || state.scenario === "trace" ? 0 : data.sampleCount(until),
      kernels: ["gpu", "trace"].includes(state.scenario) ? 9000 * 900 : 0,
      drops: partial ? [{ reason: "ring_full", meaning: "Samples lost because the kernel's buffer was full.", lost: true, count: 1204 }] : [],
      notices: partial ? ["The recording ends in the middle of a write: gpusonde was stopped without warning. Everything up to 01:21:37 was recovered."] : [],
    };
  };

  const flamegraph = (selection) => {
    if (state.scenario === "error" || state.failing === "flamegraph") throw Object.assign(new Error("the spool at /var/lib/gpusonde/000017.spool has a bad checksum at offset 8192; run `gpusonde check` to see what can be read"), { code: "corrupt" });
    if (state.scenario === "large") {
      if (!large.has(state.nodes)) large.set(state.nodes, JSON.stringify(data.largeFlamegraph(state.nodes)));
      return large.get(state.nodes);
    }
    if (selection.type === "gpu" && state.scenario !== "gpu") return data.gpuFlamegraph({ stream: -1, ...selection }, until);
    if (selection.type === "off_cpu") return data.waitingFlamegraph(selection, until);
    const json = selection.type === "gpu" ? data.gpuFlamegraph(selection, until) : data.realisticFlamegraph(selection, until);
    if (selection.type === "gpu" && selection.roots) data.addRoots(json);
    if (state.scenario === "gpu" && !selection.helper_threads) json.hidden = { threads: 2, total: 41e6 };
    if (state.scenario === "partial") json.omitted = { nodes: 12031, total: Math.round(json.total * 0.0123) };
    return json;
  };

  const processes = (selection) => {
    if (state.scenario === "trace") return selection.gpus ? data.traceProcesses() : { processes: [] };
    if (state.scenario === "ranks") return data.rankProcesses(selection, until);
    return data.realisticProcesses(selection, until);
  };

  const api = (path, params) => {
    const host = params.get("host");
    if (ofServe(state)) params.delete("host");
    switch (path) {
      case "overview":
        readSelection(params, []);
        return overview(host);
      case "session": {
        const asks = state.scenario === "tokens";
        return { needs_sign_in: asks && !state.signedIn, name: asks && state.signedIn ? "ada" : "", scope: asks && state.signedIn ? "read" : "" };
      }
      case "hosts":
        if (state.failing === "hosts") throw new Error("the hosts can't be listed.");
        readSelection(params, []);
        return { hosts: state.scenario === "cluster" ? CLUSTER : HOSTS, incidents: HOST_INCIDENTS, incidents_omitted: 1234, notices: HOST_NOTICES };
      case "strips": {
        if (state.failing === "strips") throw new Error("strips can't be read.");
        const selection = readSelection(params, [...SELECTION, "buckets", "metrics"]);
        return data.realisticStrips(selection, selection.buckets ?? 600, until, state.scenario === "gpu");
      }
      case "incidents": {
        readSelection(params, [...SELECTION, "buckets"]);
        return state.scenario === "gpu" ? data.incidents() : { steps: 0, omitted: 0, incidents: [], programs: [], warnings: [] };
      }
      case "devices": {
        const selection = readSelection(params, ["from_us", "to_us"]);
        return state.scenario === "gpu" ? data.deviceUse(selection, until) : { devices: [] };
      }
      case "usage": {
        const { by = "owner" } = readSelection(params, ["from_us", "to_us", "by"]);
        return data.usage(by, state.scenario === "gpu" || (ofServe(state) && host === null), host === null && ofServe(state) ? COVERAGE : undefined);
      }
      case "compare": {
        const selection = readSelection(params, [...SELECTION, "type", "wait", "base_from_us", "base_to_us", "base_process"]);
        if (state.failing === "compare") throw new Refusal("A: this time has 4123456 kernels, copies and sets; at most 3000000 are read at once: select a shorter time");
        if (selection.base_process === undefined) throw new Refusal("A and B are the same");
        return data.comparison(selection, state.scenario === "gpu");
      }
      case "processes":
        return processes(readSelection(params, ["from_us", "to_us", "gpus"]));
      case "summary":
        readSelection(params, SELECTION);
        return data.summary(state.scenario === "gpu");
      case "source": {
        const selection = readSelection(params, [...SELECTION, "file"]);
        if (!selection.file.endsWith(".py")) throw Object.assign(new Error(`no recorded function is from the file ${selection.file}`), { code: "not_found" });
        return data.sourceFile(selection);
      }
      case "timeline": {
        const selection = readSelection(params, ["from_us", "to_us", "process", "tid", "device", "stream", "columns", "helper_threads"]);
        if (state.failing === "timeline") throw new Refusal("this time has 31,204,511 events, and at most 20,000,000 are read at once: select a shorter time");
        if (state.timeline) return state.timeline(selection);
        return timelines.timeline(selection, until, state.scenario === "gpu");
      }
      case "work": {
        const found = timelines.work(readSelection(params, ["process", "device", "stream", "start_ns"]));
        if (!found) throw Object.assign(new Error("no GPU work of this stream starts then"), { code: "not_found" });
        return found;
      }
      case "flamegraph":
        return flamegraph(readSelection(params, [...SELECTION, "type", "wait", "min_total", "roots", "helper_threads"]));
      default:
        return null;
    }
  };

  const server = createServer((request, response) => {
    const url = new URL(request.url, "http://fixture");
    const send = (status, body, known) => {
      const text = typeof body === "string" ? body : JSON.stringify(body);
      const etag = `"${createHash("sha256").update(text).digest("hex")}"`;
      if (status === 200 && known === etag) {
        unchanged.push(url.pathname + url.search);
        return response.writeHead(304, { etag }).end();
      }
      response.writeHead(status, { "content-type": "application/json", "cache-control": "no-store", ...(status === 200 && { etag }) });
      response.end(text);
    };
    if (!url.pathname.startsWith("/api/v1/")) return serveFile(url.pathname, response);
    requests.push(url.pathname + url.search);
    if (state.down) return request.socket.destroy();
    if (request.method === "POST") {
      let body = "";
      request.on("data", (part) => (body += part)).on("end", () => {
        state.signedIn = url.pathname.endsWith("/sign-in") && JSON.parse(body).token === "good";
        if (url.pathname.endsWith("/sign-in") && !state.signedIn) return send(401, { error: { code: "permission_denied", message: "This server doesn't know the token." } });
        return send(200, {});
      });
      return;
    }
    if (state.scenario === "tokens" && !state.signedIn && !url.pathname.endsWith("/session")) {
      return send(401, { error: { code: "permission_denied", message: "the session has ended; sign in again" } });
    }
    const delay = state.scenario === "slow" && !/(overview|session)$/.test(url.pathname) ? 60_000 : state.delayMs;
    setTimeout(() => {
      try {
        const body = api(url.pathname.slice("/api/v1/".length), url.searchParams);
        if (body === null) send(404, { error: { code: "not_found", message: `no endpoint ${url.pathname}` } });
        else send(200, body, request.headers["if-none-match"]);
      } catch (error) {
        const status = error instanceof Refusal ? 400 : error.code === "not_found" ? 404 : 500;
        send(status, { error: { code: error.code ?? "invalid_argument", message: error.message } });
      }
    }, delay).unref();
  });
  await new Promise((resolve) => server.listen(port, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}/`,
    requests,
    unchanged,
    state,
    close: () => new Promise((resolve) => {
      server.closeAllConnections();
      server.close(resolve);
    }),
  };
}

function serveFile(path, response) {
  const file = join(DIST, normalize(path === "/" ? "/index.html" : path));
  if (!file.startsWith(DIST) || !statSync(file, { throwIfNoEntry: false })?.isFile()) {
    response.writeHead(404).end("not found");
    return;
  }
  response.writeHead(200, { "content-type": TYPES[extname(file)] ?? "application/octet-stream" });
  createReadStream(file).pipe(response);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const option = (name, otherwise) => {
    const at = process.argv.indexOf(`--${name}`);
    return at < 0 ? otherwise : process.argv[at + 1];
  };
  const { url } = await startFixture({
    scenario: option("scenario", "realistic"),
    nodes: Number(option("nodes", 200_000)),
    port: Number(option("port", 7777)),
  });
  console.log(`fixture server: ${url}`);
}
