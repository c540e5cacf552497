// SPDX-License-Identifier: Apache-2.0
import { useCallback, useEffect, useState } from "preact/hooks";
import { parseView } from "./view";

const current = () => parseView(location.search).host;

// The host in the address bar, and how to choose another, which starts with a plain view; null is all hosts.
export function useHost(): [string | null, (host: string | null) => void] {
  const [host, setHost] = useState(current);

  useEffect(() => {
    const restore = () => setHost(current());
    addEventListener("popstate", restore);
    return () => removeEventListener("popstate", restore);
  }, []);

  const choose = useCallback((next: string | null) => {
    if (next === current()) return;
    history.pushState(null, "", next === null ? location.pathname : hostLink(next));
    setHost(next);
  }, []);
  return [host, choose];
}

export function hostLink(host: string): string {
  return `?${new URLSearchParams({ host })}`;
}
