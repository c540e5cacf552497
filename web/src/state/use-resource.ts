// SPDX-License-Identifier: Apache-2.0
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, getJson, SESSION_ENDED } from "../api/client";

// What to fetch: the address, and the question it answers, which stays the same while a live window moves.
export interface Asked {
  url: string;
  question: string;
}

export interface Resource<T> {
  data: T | null;
  // Set when the last request for the current question failed; `data` then still holds the previous response.
  error: ApiError | null;
  loading: boolean;
  // The question that `data` answers, and its ETag.
  question: string | null;
  etag: string | null;
}

// What an address answered, and the ETag to ask again with.
export interface Read<T> {
  data: T;
  etag: string | null;
}

// Null if nothing has changed since the ETag. Throws ApiError; an abort is rethrown as the DOM's AbortError.
export type Reader<T> = (url: string, signal: AbortSignal, etag: string | null) => Promise<Read<T> | null>;

interface Request extends Asked {
  abort: AbortController;
  stale: boolean;
}

// Fetches JSON. `parse` may throw ApiError.
export function useResource<Json, T>(asked: Asked | null, revision: number | string, parse: (json: Json) => T): Resource<T> {
  return useReader(asked, revision, async (url, signal, etag) => {
    const answer = await getJson<Json>(url, signal, etag);
    return answer && { data: parse(answer.json), etag: answer.etag };
  });
}

// Reads what is asked and keeps the previous response on the screen until the next arrives. A new question aborts
// the current request. A new `revision` (live data, a retry) or another address for the same question fetches again
// without aborting: otherwise a server slower than the polling would never get a response through. An unchanged
// response is neither sent nor parsed again.
export function useReader<T>(asked: Asked | null, revision: number | string, read: Reader<T>): Resource<T> {
  const [state, setState] = useState<Resource<T>>({ data: null, error: null, loading: asked !== null, question: null, etag: null });
  const inFlight = useRef<Request | null>(null);
  const latest = useRef(asked);
  latest.current = asked;
  // The question and ETag of `data`; the state that a request started with may be older.
  const held = useRef<{ question: string; etag: string | null } | null>(null);
  // The question of the latest request.
  const current = useRef<string | null>(null);

  const load = ({ url, question }: Asked) => {
    const request = { url, question, abort: new AbortController(), stale: false };
    inFlight.current = request;
    const isNew = current.current !== question;
    current.current = question;
    setState((old) => ({ ...old, loading: true, error: isNew ? null : old.error }));
    // Sent even if the window has moved: the server recognises polls by it.
    const etag = held.current?.question === question ? held.current.etag : null;
    read(url, request.abort.signal, etag)
      .then((answer) => {
        if (answer === null) return { error: null, loading: false, question };
        if (inFlight.current === request) held.current = { question, etag: answer.etag };
        return { ...answer, error: null, loading: false, question };
      })
      .catch((cause: unknown) => {
        if (request.abort.signal.aborted) return null;
        const error = cause instanceof ApiError ? cause : new ApiError("malformed", String(cause));
        if (error.status === 401) dispatchEvent(new Event(SESSION_ENDED));
        return { error, loading: false };
      })
      .then((outcome) => {
        if (inFlight.current !== request) return;
        inFlight.current = null;
        if (outcome) setState((old) => ({ ...old, ...outcome }));
        if (request.stale && latest.current?.question === question) load(latest.current);
      });
  };

  useEffect(() => {
    if (asked === null) return;
    if (inFlight.current?.question === asked.question) {
      inFlight.current.stale = true;
      return;
    }
    inFlight.current?.abort.abort();
    load(asked);
  }, [asked?.url, asked?.question, revision]);

  useEffect(() => () => inFlight.current?.abort.abort(), []);
  return state;
}
