// SPDX-License-Identifier: Apache-2.0
import type { ApiError } from "../api/client";
import type { Overview } from "../api/types";
import { formatCount } from "../format";
import type { View } from "../state/view";
import type { Timeline } from "../timeline/model";
import type { Span } from "../timeline/span";
import { Failed, Message } from "./states";

// What is not shown, one line each.
export function LeftOut({ timeline, view }: { timeline: Timeline | null; view: View }) {
  const lines: string[] = [];
  const omitted = timeline?.omitted_tracks ?? 0;
  if (omitted > 0) lines.push(`${formatCount(omitted)} quieter threads and streams are not shown; choose a process${view.processes.length === 1 ? " and a thread" : ""} to see them.`);
  if (view.filter) lines.push("The filter on stacks doesn’t apply to the timeline.");
  if (lines.length === 0) return null;
  return (
    <ul class="incomplete" aria-label="What is missing">
      {lines.map((line) => (
        <li key={line}>{line}</li>
      ))}
    </ul>
  );
}

// Nothing is there to be shown: too many events, or the server failed.
export function NotRead({ error, span, onShorter, onRetry }: { error: ApiError; span: Span; onShorter: (span: Span) => void; onRetry: () => void }) {
  if (error.code !== "invalid_argument") {
    return (
      <div class="timeline-over">
        <Failed error={error} onRetry={onRetry} />
      </div>
    );
  }
  const middle = (span.from + span.to) / 2;
  const half = (span.to - span.from) / 20;
  return (
    <div class="timeline-over">
      <Message title="This time could not be read" kind="failed">
        <p>{error.message}</p>
        <p>
          <button type="button" class="plain" onClick={() => onShorter({ from: middle - half, to: middle + half })}>
            Show a tenth of it
          </button>
        </p>
        <p class="dim">Or drag over a strip above to choose a time.</p>
      </Message>
    </div>
  );
}

export function NothingThen({ overview }: { overview: Overview }) {
  return (
    <div class="timeline-over">
      <Message title="No GPU work, calls or samples in this time" kind="empty">
        {overview.kernels === 0 ? (
          <>
            <p>To record a CUDA program with its kernels, its calls and the states of its threads:</p>
            <pre>gpusonde record -- COMMAND</pre>
          </>
        ) : (
          <p>The strips above show when there was some: drag over one to go there.</p>
        )}
      </Message>
    </div>
  );
}
