// SPDX-License-Identifier: Apache-2.0
import { useCallback, useEffect, useState } from "preact/hooks";
import { formatView, parseView, type View } from "./view";

export type Change = Partial<View>;

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
    const next = { ...parseView(location.search), ...change };
    const address = location.pathname + formatView(next);
    if (address === location.pathname + location.search) return;
    if (push) history.pushState(null, "", address);
    else history.replaceState(null, "", address);
    setView(next);
  }, []);

  const step = useCallback((change: Change) => go(change, true), [go]);
  const adjust = useCallback((change: Change) => go(change, false), [go]);
  return [view, { step, adjust }];
}
