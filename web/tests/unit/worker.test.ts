// SPDX-License-Identifier: Apache-2.0
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { AbortRequest, ReadReply, ReadRequest } from "../../src/timeline/worker";

const EMPTY = { from_us: 0, to_us: 1, resolution_ns: 1, events: 0, names: [], devices: [], processes: [], gpu_users: [], tracks: [], omitted_tracks: 0 };

let send: (request: ReadRequest | AbortRequest) => void;
let replies: ReadReply[];

beforeEach(async () => {
  replies = [];
  vi.stubGlobal("addEventListener", (_: string, handle: (event: { data: unknown }) => void) => (send = (data) => handle({ data })));
  vi.stubGlobal("postMessage", (reply: ReadReply) => replies.push(reply));
  // An answer that has arrived whole: its abort comes too late for the network.
  vi.stubGlobal("fetch", () => Promise.resolve(new Response(JSON.stringify(EMPTY), { headers: { etag: '"1"' } })));
  vi.resetModules();
  await import("../../src/timeline/worker");
});
afterEach(() => vi.unstubAllGlobals());

test("an answer is parsed, once", async () => {
  send({ id: 1, url: "http://host/timeline", etag: null });
  await vi.waitFor(() => expect(replies).toHaveLength(1));
  expect(replies[0]!.answer!.data.tracks).toEqual([]);
  expect(replies[0]!.answer!.etag).toBe('"1"');
});

test("an answer that is aborted as it arrives is not parsed", async () => {
  send({ id: 2, url: "http://host/timeline", etag: null });
  // The worker gets messages between tasks: this one waits while the answer is read.
  setTimeout(() => send({ abort: 2 }));
  await vi.waitFor(() => expect(replies).toHaveLength(1));
  expect(replies[0]).toEqual({ id: 2 });
});
