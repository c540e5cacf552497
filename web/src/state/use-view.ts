// SPDX-License-Identifier: Apache-2.0
import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { formatView, parseView, type ProfileType, type View } from "./view";

// A change, or a function of the current view, which may be newer than the last drawn one.
export type Change = Partial<View> | ((now: View) => Partial<View>);

// `step` adds a history entry that Back undoes; `adjust` refines the view (typing, sorting) and replaces the address.
export interface Navigation {
  step(change: Change): void;
  adjust(change: Change): void;
}

// The view in the address bar and the two ways to change it. `opensOn`: see parseView.
export function useView(opensOn: ProfileType): [View, Navigation] {
  const [query, setQuery] = useState(location.search);
  const opening = useRef(opensOn);
  opening.current = opensOn;

  useEffect(() => {
    const restore = () => setQuery(location.search);
    addEventListener("popstate", restore);
    return () => removeEventListener("popstate", restore);
  }, []);

  const go = useCallback((change: Change, push: boolean) => {
    const now = parseView(location.search, opening.current);
    const next = { ...now, ...(typeof change === "function" ? change(now) : change) };
    // Of the views, not of the addresses: the same view may have been linked to in another order.
    if (formatView(next, opening.current) === formatView(now, opening.current)) return;
    const address = location.pathname + formatView(next, opening.current);
    if (push) history.pushState(null, "", address);
    else history.replaceState(null, "", address);
    setQuery(location.search);
  }, []);

  const nav = useMemo(
    () => ({ step: (change: Change) => go(change, true), adjust: (change: Change) => go(change, false) }),
    [go],
  );
  return [useMemo(() => parseView(query, opensOn), [query, opensOn]), nav];
}
