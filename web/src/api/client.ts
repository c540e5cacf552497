// SPDX-License-Identifier: Apache-2.0
import type { Selection } from "./types";

// Every way a request can fail, in a form that can be shown. `code` is the server's, or `unreachable` (no response)
// or `malformed` (a response that violates docs/api.md). `status` is that of the response; 0: none.
export class ApiError extends Error {
  constructor(
    readonly code: string,
    message: string,
    readonly status = 0,
  ) {
    super(message);
  }
}

// An event of the window: a request was refused because the session has ended, by its age or with its token.
export const SESSION_ENDED = "session-ended";

// The address of an endpoint, relative to the page so that a proxy may add a path in front.
export function apiUrl(
  endpoint: string,
  selection: Selection = {},
  extra: Record<string, string | number> = {},
): string {
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries({ ...extra, ...selection })) {
    if (value !== undefined && value !== "") query.set(key, String(value));
  }
  const text = query.toString();
  return `api/v1/${endpoint}${text ? `?${text}` : ""}`;
}

export interface Answer<T> {
  json: T;
  // The ETag, sent with the next request for the same data.
  etag: string | null;
}

// Null if the data has not changed since `etag`. Throws ApiError; an abort is rethrown as the DOM's AbortError.
export async function getJson<T>(url: string, signal: AbortSignal, etag: string | null = null): Promise<Answer<T> | null> {
  let response: Response;
  try {
    response = await fetch(url, { signal, headers: { accept: "application/json", ...(etag && { "if-none-match": etag }) } });
  } catch (cause) {
    if (signal.aborted) throw cause;
    throw unreachable();
  }
  if (response.status === 304) return null;
  let body: unknown;
  try {
    body = await response.json();
  } catch (cause) {
    if (signal.aborted) throw cause;
    throw new ApiError("malformed", `The answer to ${url} (status ${response.status}) is not JSON.`);
  }
  if (response.ok) return { json: body as T, etag: response.headers.get("etag") };
  throw errorOf(response, url, body);
}

// Throws ApiError.
export async function postJson(url: string, body: object): Promise<void> {
  let response: Response;
  try {
    response = await fetch(url, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
  } catch {
    throw unreachable();
  }
  if (!response.ok) throw errorOf(response, url, await response.json().catch(() => null));
}

function unreachable(): ApiError {
  return new ApiError("unreachable", `gpusonde does not respond at ${location.host}. Is it still running?`);
}

// What a failed response says. A proxy may have answered, with any JSON or none (null).
function errorOf({ status }: Response, url: string, body: unknown): ApiError {
  const error = (body as { error?: { code?: string; message?: string } } | null)?.error;
  return new ApiError(error?.code ?? `http_${status}`, error?.message ?? `The server answered ${url} with status ${status}.`, status);
}
