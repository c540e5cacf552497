// SPDX-License-Identifier: Apache-2.0
import { useCallback, useEffect, useMemo, useState } from "preact/hooks";
import { formatView, parseView, type View } from "./view";

// What changes, or how it follows from the view as it is now, which may be newer than the one last drawn.
export type Change = Partial<View> | ((now: View) => Partial<View>);

// `step` is something that Back should undo; `adjust` refines what is shown (typing, sorting) and
// replaces the address in place.
export interface Navigation {
  step(change: Change): void;
  adjust(change: Change): void;
}

// The view as the address bar has it, and the two ways to change it.
export function useView(): [View, Navigation] {
  const [view, setView] = useState(() => parseView(location.search));

  useEffect(() => {
    const restore = () => setView(parseView(location.search));
    addEventListener("popstate", restore);
    return () => removeEventListener("popstate", restore);
  }, []);

  const go = useCallback((change: Change, push: boolean) => {
    const now = parseView(location.search);
    const next = { ...now, ...(typeof change === "function" ? change(now) : change) };
    const address = location.pathname + formatView(next);
    if (address === location.pathname + location.search) return;
    if (push) history.pushState(null, "", address);
    else history.replaceState(null, "", address);
    setView(next);
  }, []);

  const nav = useMemo(
    () => ({ step: (change: Change) => go(change, true), adjust: (change: Change) => go(change, false) }),
    [go],
  );
  return [view, nav];
}
