// SPDX-License-Identifier: Apache-2.0
import { useEffect, useMemo, useState } from "preact/hooks";
import { apiUrl } from "../api/client";
import type { Timeline } from "../timeline/model";
import { readTimeline } from "../timeline/reader";
import type { Quantised } from "../timeline/span";
import { useReader, type Asked, type Resource } from "./use-resource";
import { processSelection, type View } from "./view";

// While the timeline moves, a request waits until no other has followed for so long.
const QUIET_MS = 120;

// The timeline around what is visible, and what was asked; the previous answer stays until the next arrives. The
// selection's filter is left out: it is one of stacks.
export function useTimeline(wanted: Quantised | null, view: View, ofHost: Record<string, string>, revision: string): Resource<Timeline> & { asked: Asked | null } {
  const url =
    wanted &&
    apiUrl(
      "timeline",
      {
        from_us: wanted.from,
        to_us: wanted.to,
        ...processSelection(view),
        ...(view.processes.length === 1 && view.tid !== null && { tid: view.tid }),
        ...(view.device && { device: view.device }),
        ...(view.device && view.stream !== null && { stream: view.stream }),
      },
      { ...ofHost, columns: wanted.columns, ...(view.helpers && { helper_threads: 1 }) },
    );
  const quiet = useQuiet(url, QUIET_MS);
  const asked = useMemo(() => (quiet === null ? null : { url: quiet, question: quiet }), [quiet]);
  const resource = useReader(asked, revision, readTimeline);
  return { ...resource, asked };
}

// The value once it has stayed the same for a while; the first one at once.
function useQuiet(value: string | null, ms: number): string | null {
  const [quiet, setQuiet] = useState(value);
  useEffect(() => {
    if (value === quiet) return;
    if (quiet === null) return setQuiet(value);
    const timer = setTimeout(() => setQuiet(value), ms);
    return () => clearTimeout(timer);
  }, [value, quiet]);
  return quiet;
}
