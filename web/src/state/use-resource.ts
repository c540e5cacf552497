// SPDX-License-Identifier: Apache-2.0
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, getJson } from "../api/client";

export interface Resource<T> {
  data: T | null;
  // Set when the last request failed; `data` then still holds the one before.
  error: ApiError | null;
  loading: boolean;
  // The address that `data` answers.
  url: string | null;
}

// Keeps the answer to `url`, and the one before on the screen until the next arrives.
//
// A new address aborts the request under way. A new `revision` (live data, a retry) asks for the
// same address again and never aborts: a server slower than the polling would otherwise never be
// heard. `parse` may throw ApiError.
export function useResource<Json, T>(
  url: string | null,
  revision: number,
  parse: (json: Json) => T,
): Resource<T> {
  const [state, setState] = useState<Resource<T>>({ data: null, error: null, loading: url !== null, url: null });
  const inFlight = useRef<{ url: string; abort: AbortController; stale: boolean } | null>(null);

  const load = (address: string) => {
    const request = { url: address, abort: new AbortController(), stale: false };
    inFlight.current = request;
    setState((old) => ({ ...old, loading: true }));
    getJson<Json>(address, request.abort.signal)
      .then((json) => ({ data: parse(json), error: null, loading: false, url: address }))
      .catch((cause: unknown) => {
        if (request.abort.signal.aborted) return null;
        const error = cause instanceof ApiError ? cause : new ApiError("malformed", String(cause));
        return { error, loading: false };
      })
      .then((outcome) => {
        if (inFlight.current !== request) return;
        inFlight.current = null;
        if (outcome) setState((old) => ({ ...old, ...outcome }));
        if (request.stale) load(address);
      });
  };

  useEffect(() => {
    if (url === null) return;
    if (inFlight.current?.url === url) {
      inFlight.current.stale = true;
      return;
    }
    inFlight.current?.abort.abort();
    load(url);
  }, [url, revision]);

  useEffect(() => () => inFlight.current?.abort.abort(), []);
  return state;
}
