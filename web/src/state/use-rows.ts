// SPDX-License-Identifier: Apache-2.0
import type { RefObject } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

const OVERSCAN = 6;
// On paper, where nothing scrolls: with the strips above they fill a page.
const PRINTED_ROWS = 30;

// The visible rows [first, last) of a long list with rows of `height` pixels; only these are in the document. A print has
// the first of all.
export function useRowsInSight(count: number, height: number): { scroller: RefObject<HTMLDivElement>; first: number; last: number } {
  const scroller = useRef<HTMLDivElement>(null);
  const [place, setPlace] = useState({ top: 0, height: 600 });

  useEffect(() => {
    const box = scroller.current!;
    let printing = false;
    const measure = () => printing || setPlace({ top: box.scrollTop, height: box.clientHeight });
    const begin = () => {
      printing = true;
      setPlace({ top: 0, height: (PRINTED_ROWS - OVERSCAN) * height });
    };
    const end = () => {
      printing = false;
      measure();
    };
    const resizes = new ResizeObserver(measure);
    resizes.observe(box);
    box.addEventListener("scroll", measure, { passive: true });
    addEventListener("beforeprint", begin);
    addEventListener("afterprint", end);
    return () => {
      resizes.disconnect();
      removeEventListener("beforeprint", begin);
      removeEventListener("afterprint", end);
      box.removeEventListener("scroll", measure);
    };
  }, []);

  return {
    scroller,
    first: Math.max(0, Math.floor(place.top / height) - OVERSCAN),
    last: Math.min(count, Math.ceil((place.top + place.height) / height) + OVERSCAN),
  };
}
