// SPDX-License-Identifier: Apache-2.0

// Runs in a thread of its own: an answer may have 300,000 slices, whose parsing would hold up the frames of whoever
// zooms meanwhile. Sends exactly one reply to each request.
import { ApiError, getJson } from "../api/client";
import { buffersOf, parseTimeline, type Timeline } from "./model";
import type { TimelineJson } from "../api/types";

export interface ReadRequest {
  id: number;
  // Absolute: a worker's own relative addresses begin at its file.
  url: string;
  etag: string | null;
}

export interface AbortRequest {
  abort: number;
}

// `answer` is null if nothing has changed since the request's ETag; without one and without an error it was aborted.
export interface ReadReply {
  id: number;
  answer?: { data: Timeline; etag: string | null } | null;
  error?: { code: string; message: string; status: number };
}

const running = new Map<number, AbortController>();

addEventListener("message", ({ data }: MessageEvent<ReadRequest | AbortRequest>) => {
  if ("abort" in data) running.get(data.abort)?.abort();
  else void read(data);
});

async function read({ id, url, etag }: ReadRequest): Promise<void> {
  const abort = new AbortController();
  running.set(id, abort);
  const reply = (rest: Omit<ReadReply, "id">, transfer: ArrayBuffer[] = []) => postMessage({ id, ...rest } satisfies ReadReply, { transfer });
  try {
    const answer = await getJson<TimelineJson>(url, abort.signal, etag);
    if (answer === null) return reply({ answer: null });
    // Lets in an abort that has come while the answer arrived, or another one was parsed.
    await new Promise((resolve) => setTimeout(resolve));
    if (abort.signal.aborted) return reply({});
    const data = parseTimeline(answer.json);
    reply({ answer: { data, etag: answer.etag } }, buffersOf(data));
  } catch (cause) {
    if (abort.signal.aborted) return reply({});
    const { code, message, status } = cause instanceof ApiError ? cause : new ApiError("malformed", String(cause));
    reply({ error: { code, message, status } });
  } finally {
    running.delete(id);
  }
}
