// SPDX-License-Identifier: Apache-2.0
import type { RefObject } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

const GAP = 14;

// Places a tooltip beside a point of the window, always inside the window. `content` changes with what it says.
export function usePlacement({ x, y }: { x: number; y: number }, content: unknown): RefObject<HTMLDivElement> {
  const box = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const { offsetWidth, offsetHeight, style } = box.current!;
    const left = x + GAP + offsetWidth > innerWidth ? Math.max(4, x - GAP - offsetWidth) : x + GAP;
    const top = y + GAP + offsetHeight > innerHeight ? Math.max(4, y - GAP - offsetHeight) : y + GAP;
    style.transform = `translate(${left}px, ${top}px)`;
  }, [content, x, y]);
  return box;
}
