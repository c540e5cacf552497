// SPDX-License-Identifier: Apache-2.0
import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { formatView, parseView, type ProfileType, type View } from "./view";

// What changes, or how it follows from the view as it is now, which may be newer than the one last drawn.
export type Change = Partial<View> | ((now: View) => Partial<View>);

// `step` is something that Back should undo; `adjust` refines what is shown (typing, sorting) and
// replaces the address in place.
export interface Navigation {
  step(change: Change): void;
  adjust(change: Change): void;
}

// The view as the address bar has it, and the two ways to change it. `opensOn`: see parseView.
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
    const address = location.pathname + formatView(next, opening.current);
    if (address === location.pathname + location.search) return;
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
