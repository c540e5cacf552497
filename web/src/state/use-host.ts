// SPDX-License-Identifier: Apache-2.0
import { useCallback, useEffect, useState } from "preact/hooks";
import { parseView, type View } from "./view";

type Page = View["page"];
export type ChooseHost = (host: string | null, page?: Page) => void;

const current = () => parseView(location.search).host;

// The host in the address bar, and how to choose another, which starts with a plain view; null is all hosts.
export function useHost(): [string | null, ChooseHost] {
  const [host, setHost] = useState(current);

  useEffect(() => {
    const restore = () => setHost(current());
    addEventListener("popstate", restore);
    return () => removeEventListener("popstate", restore);
  }, []);

  const choose = useCallback((next: string | null, page?: Page) => {
    if (next === current()) return;
    history.pushState(null, "", next === null ? location.pathname : hostLink(next, page));
    setHost(next);
  }, []);
  return [host, choose];
}

export function hostLink(host: string, page?: Page): string {
  return `?${new URLSearchParams({ host, ...(page && { page }) })}`;
}
