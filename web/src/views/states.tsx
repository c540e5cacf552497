// SPDX-License-Identifier: Apache-2.0
import type { ComponentChildren } from "preact";
import type { ApiError } from "../api/client";
import type { Overview } from "../api/types";
import { formatCount, formatShare, formatValue } from "../format";

// In the place of a chart: one sentence that says what is, and what to do about it.
export function Message({ title, children, kind }: { title: string; children?: ComponentChildren; kind: string }) {
  return (
    <div class={`message ${kind}`} role={kind === "failed" ? "alert" : "status"}>
      <h2>{title}</h2>
      {children}
    </div>
  );
}

export function Loading({ what }: { what: string }) {
  return (
    <Message title={`Reading ${what}…`} kind="loading">
      <div class="progress" />
    </Message>
  );
}

export function Failed({ error, onRetry }: { error: ApiError; onRetry: () => void }) {
  return (
    <Message title={error.code === "unreachable" ? "No answer" : "This could not be read"} kind="failed">
      <p>{error.message}</p>
      <p>
        <button type="button" class="plain" onClick={onRetry}>
          Try again
        </button>
        <code class="code">{error.code}</code>
      </p>
    </Message>
  );
}

// Requests that failed while what was read before is still shown; a cause that they share, once.
export function Troubles({ errors }: { errors: ApiError[] }) {
  const messages = [...new Set(errors.map(({ message }) => message))];
  return (
    <>
      {messages.map((message) => (
        <p class="lost" role="alert" key={message}>
          {message} <span class="dim">What is shown was read before.</span>
        </p>
      ))}
    </>
  );
}

export function NothingRecorded({ overview }: { overview: Overview }) {
  if (overview.mode === "view") {
    return (
      <Message title="This recording has no samples" kind="empty">
        <p>Nothing ran on a CPU while it was made, or it ended before the first sample. To make another:</p>
        <pre>gpusonde record -- COMMAND</pre>
      </Message>
    );
  }
  return (
    <Message title="No samples yet" kind="empty">
      <p>gpusonde samples what runs on this machine&rsquo;s CPUs. The first samples arrive within seconds of something running.</p>
      <p>To profile one command from its start to its end instead:</p>
      <pre>gpusonde record -- COMMAND</pre>
    </Message>
  );
}

// Samples exist, but none in this selection: says which parts of it can be let go.
export function NothingSelected({ parts }: { parts: { label: string; clear: () => void }[] }) {
  return (
    <Message title="No samples in this selection" kind="empty">
      {parts.length > 0 && (
        <>
          <p>No stack meets all of these. Remove one to widen the selection:</p>
          <p class="choices">
            {parts.map(({ label, clear }) => (
              <button type="button" class="plain" key={label} onClick={clear}>
                {label} <span aria-hidden="true">✕</span>
              </button>
            ))}
          </p>
        </>
      )}
    </Message>
  );
}

// What is missing from the picture, in a line each; nothing when it is whole.
export function Incomplete({
  overview,
  omitted,
  total,
  unit,
}: {
  overview: Overview;
  omitted: { nodes: number; total: number };
  total: number;
  unit: string;
}) {
  const lines = overview.notices.map((notice) => ({ text: notice, detail: "" }));
  for (const { count, lost, meaning, reason } of overview.drops) {
    lines.push({ text: `${formatCount(count)}${lost ? " dropped" : ""}: ${meaning}`, detail: reason });
  }
  if (omitted.nodes > 0) {
    const share = `${formatValue(omitted.total, unit)}, ${formatShare(omitted.total, total)}`;
    lines.push({
      text: `${formatCount(omitted.nodes)} frames too small to see are left out (${share}). Their time is in their callers’ totals.`,
      detail: "",
    });
  }
  if (lines.length === 0) return null;
  return (
    <ul class="incomplete" aria-label="What is missing">
      {lines.map(({ text, detail }) => (
        <li key={text} title={detail}>
          {text}
        </li>
      ))}
    </ul>
  );
}
