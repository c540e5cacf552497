// SPDX-License-Identifier: Apache-2.0
import { useCallback, useEffect, useState } from "preact/hooks";
import { parseView, type View } from "./view";

// The page of a host, and the seconds that its strips cover, instead of the defaults.
export interface Opening {
  page: View["page"];
  last: number;
}

export type ChooseHost = (host: string | null, opening?: Opening) => void;

const current = () => parseView(location.search).host;

// The host in the address bar, and how to choose another, which starts with a plain view; null is all hosts.
export function useHost(): [string | null, ChooseHost] {
  const [host, setHost] = useState(current);

  useEffect(() => {
    const restore = () => setHost(current());
    addEventListener("popstate", restore);
    return () => removeEventListener("popstate", restore);
  }, []);

  const choose = useCallback((next: string | null, opening?: Opening) => {
    if (next === current()) return;
    history.pushState(null, "", next === null ? location.pathname : hostLink(next, opening));
    setHost(next);
  }, []);
  return [host, choose];
}

export function hostLink(host: string, opening?: Opening): string {
  return `?${new URLSearchParams({ host, ...(opening && { page: opening.page, last: String(opening.last) }) })}`;
}
