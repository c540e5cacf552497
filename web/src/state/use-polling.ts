// SPDX-License-Identifier: Apache-2.0
import { useCallback, useEffect, useState } from "preact/hooks";

// How often a live page asks whether there is new data.
export const POLL_MS = 2000;

// A counter, and how to add one to it.
export function useCount(): [count: number, add: () => void] {
  const [count, setCount] = useState(0);
  return [count, useCallback(() => setCount((before) => before + 1), [])];
}

// Polls while there may be news and somebody looks.
export function usePolling(poll: () => void, live: boolean, lost: boolean): void {
  useEffect(() => {
    // A recording never changes, but a lost server may come back.
    if (!live && !lost) return;
    const tick = () => document.hidden || poll();
    const timer = setInterval(tick, POLL_MS);
    document.addEventListener("visibilitychange", tick);
    return () => {
      clearInterval(timer);
      document.removeEventListener("visibilitychange", tick);
    };
  }, [live, lost]);
}
