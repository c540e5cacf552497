// SPDX-License-Identifier: Apache-2.0
import { ApiError } from "../api/client";
import type { Read } from "../state/use-resource";
import type { Timeline } from "./model";
import type { AbortRequest, ReadReply, ReadRequest } from "./worker";

interface Waiting {
  resolve: (read: Read<Timeline> | null) => void;
  reject: (cause: unknown) => void;
}

const waiting = new Map<number, Waiting>();
let worker: Worker | null = null;
let requests = 0;

// Reads and parses a timeline in a worker; as the readers of useResource.
export function readTimeline(url: string, signal: AbortSignal, etag: string | null): Promise<Read<Timeline> | null> {
  const to = (worker ??= started());
  const id = ++requests;
  return new Promise((resolve, reject) => {
    waiting.set(id, { resolve, reject });
    signal.addEventListener("abort", () => {
      if (!waiting.delete(id)) return;
      to.postMessage({ abort: id } satisfies AbortRequest);
      reject(signal.reason);
    });
    to.postMessage({ id, url: new URL(url, document.baseURI).href, etag } satisfies ReadRequest);
  });
}

function started(): Worker {
  const one = new Worker(new URL("./worker.ts", import.meta.url), { type: "module" });
  one.addEventListener("message", ({ data: { id, answer, error } }: MessageEvent<ReadReply>) => {
    const asker = waiting.get(id);
    waiting.delete(id);
    if (error) asker?.reject(new ApiError(error.code, error.message, error.status));
    else asker?.resolve(answer ?? null);
  });
  // Its file could not be read: the next request tries again.
  one.addEventListener("error", () => {
    const failure = new ApiError("unreachable", `A file of this page could not be read from ${location.host}. Is gpusonde still running? Then reload the page.`);
    for (const { reject } of waiting.values()) reject(failure);
    waiting.clear();
    worker = null;
  });
  return one;
}
