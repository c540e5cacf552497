// SPDX-License-Identifier: Apache-2.0
import { useRef } from "preact/hooks";

// Seconds since `value` last changed, as of this render.
export function useAge(value: unknown): number {
  const now = performance.now();
  const last = useRef({ value, changed: now });
  if (last.current.value !== value) last.current = { value, changed: now };
  return (now - last.current.changed) / 1000;
}
