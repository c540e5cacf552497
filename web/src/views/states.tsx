// SPDX-License-Identifier: Apache-2.0
import type { ComponentChildren } from "preact";
import type { ApiError } from "../api/client";
import type { Overview } from "../api/types";
import { formatCount, formatShare, formatValue, unbroken } from "../format";
import { printable } from "../printable";
import type { Problem } from "../state/use-host-data";
import type { View } from "../state/view";

// Shown instead of a chart: one sentence about the situation, and what to do.
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
    <Message title={error.code === "unreachable" ? "No response" : "This data could not be read"} kind="failed">
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

// As an old link leads to.
export function UnknownHost({ host, onAll }: { host: string; onAll: () => void }) {
  return (
    <Message title="No such host" kind="failed">
      <p>{printable(host)} has sent nothing to this server, or its data was older than what the server keeps.</p>
      <p>
        <button type="button" class="plain" onClick={onAll}>
          All hosts
        </button>
      </p>
    </Message>
  );
}

// Failed requests for what surrounds the page's own data, or for news of it.
export function Problems({ problems }: { problems: Problem[] }) {
  return (
    <>
      {problems.map(({ message, older }) => (
        <p class="lost" role="alert" key={message}>
          {message} {older && <span class="dim">Older data is shown.</span>}
        </p>
      ))}
    </>
  );
}

// Why the shown data may be incomplete, on every page: the disk is full, a file was damaged.
export function Notices({ notices }: { notices: string[] }) {
  return (
    <>
      {notices.map((notice) => (
        <p class="lost" role="status" key={notice}>
          {unbroken(notice)}
        </p>
      ))}
    </>
  );
}

export function NothingRecorded({ overview }: { overview: Overview }) {
  if (overview.mode === "view") {
    return (
      <Message title="This recording has no samples" kind="empty">
        <p>Nothing ran on a CPU while recording, or the program ended before the first sample. To record again:</p>
        <pre>gpusonde record -- COMMAND</pre>
      </Message>
    );
  }
  if (overview.mode === "serve") {
    return (
      <Message title="No data yet" kind="empty">
        <p>Data arrives from a host seconds after its agent has started:</p>
        <pre>gpusonde agent --server URL --token-file FILE</pre>
      </Message>
    );
  }
  return (
    <Message title="No samples yet" kind="empty">
      <p>gpusonde samples the threads that run on this machine&rsquo;s CPUs. The first samples arrive within seconds.</p>
      <p>To profile one command from its start to its end instead:</p>
      <pre>gpusonde record -- COMMAND</pre>
    </Message>
  );
}

// A part of the selection that can be removed.
export interface Part {
  label: string;
  clear: () => void;
}

// The selection has no such data: explains why and what to do.
export function NothingSelected({ view, overview, parts, onGpu }: { view: View; overview: Overview; parts: Part[]; onGpu: () => void }) {
  if (view.type === "gpu" && overview.kernels === 0) return <NoGpuWork overview={overview} />;
  if (view.type === "gpu") {
    return (
      <Message title="No GPU work in this selection" kind="empty">
        <p>{formatCount(overview.kernels)} kernels are known, but none that starts in this selection.</p>
        <Parts parts={parts} />
      </Message>
    );
  }
  if (overview.samples === 0 && overview.kernels > 0) {
    return (
      <Message title="CPUs were not sampled" kind="empty">
        <p>
          A trace of another profiler, or a recording without privileges, has GPU work but no CPU samples.{" "}
          <button type="button" class="plain" onClick={onGpu}>
            Show GPU time
          </button>
        </p>
      </Message>
    );
  }
  if (view.type === "off_cpu") {
    return (
      <Message title="No waits in this selection" kind="empty">
        <p>
          Waits are sampled, with a probability that grows with their length, and recorded when they end: short waits show up only if there
          are many, and current waits are not included yet.
        </p>
        <Parts parts={parts} />
      </Message>
    );
  }
  if (view.idle) {
    return (
      <Message title="No samples while the GPU was idle" kind="empty">
        <p>
          Either the GPU was never idle, or no CPU was busy while it was: a thread that waits for a disk, the network or a lock is not on a
          CPU. Time in which the GPU was not observed is left out.
        </p>
        <Parts parts={parts} />
      </Message>
    );
  }
  if (overview.samples === 0) return <NothingRecorded overview={overview} />;
  return (
    <Message title="No samples in this selection" kind="empty">
      <Parts parts={parts} />
    </Message>
  );
}

function Parts({ parts }: { parts: Part[] }) {
  if (parts.length === 0) return null;
  return (
    <>
      <p>No data matches all of these filters. Remove one to widen the selection:</p>
      <p class="choices">
        {parts.map(({ label, clear }) => (
          <button type="button" class="plain" key={label} onClick={clear}>
            {label} <span aria-hidden="true">✕</span>
          </button>
        ))}
      </p>
    </>
  );
}

function NoGpuWork({ overview }: { overview: Overview }) {
  return (
    <Message title={overview.mode === "view" ? "This recording has no GPU work" : "No GPU work yet"} kind="empty">
      <HowToProfileGpuWork overview={overview} />
    </Message>
  );
}

// For a shell.
const quoted = (path: string) => (/^[\w/.+-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`);

export function HowToProfileGpuWork({ overview: { mode, inject_library: library } }: { overview: Overview }) {
  if (mode === "view") {
    return (
      <>
        <p>The program launched nothing on a GPU, or it was already running when the recording began. To record a CUDA program from its start:</p>
        <pre>gpusonde record -- COMMAND</pre>
        <p>To see what this machine lacks:</p>
        <pre>gpusonde doctor</pre>
      </>
    );
  }
  return (
    <>
      <p>Only CUDA programs started with gpusonde&rsquo;s library{library === null && ", which is installed with gpusonde,"} are profiled:</p>
      <pre>{`export CUDA_INJECTION64_PATH=${library === null ? "…/libgpusonde-inject.so" : quoted(library)}
export NVTX_INJECTION64_PATH="$CUDA_INJECTION64_PATH"
COMMAND`}</pre>
      <p>The library costs nothing while gpusonde is not running. To profile one command without it:</p>
      <pre>gpusonde record -- COMMAND</pre>
    </>
  );
}

// Lists what is missing from the picture, one line each; empty if nothing is.
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
  const lines: Line[] = [];
  const poorer: Line[] = [];
  for (const { count, lost, meaning, reason } of overview.drops) {
    (lost ? lines : poorer).push({ text: `${formatCount(count)}${lost ? " dropped" : ""}: ${unbroken(meaning)}`, detail: reason });
  }
  if (omitted.nodes > 0) {
    const share = `${formatValue(omitted.total, unit)}, ${formatShare(omitted.total, total)}`;
    lines.push({
      text: `${formatCount(omitted.nodes)} frames too small to see are left out (${share}). Their time is in their callers’ totals.`,
      detail: "",
    });
  }
  return (
    <>
      {lines.length > 0 && <Lines lines={lines} label="What is missing" />}
      {poorer.length > 0 && (
        <details class="poorer">
          <summary>
            Some frames have less detail than possible ({poorer.length} {poorer.length === 1 ? "reason" : "reasons"})
          </summary>
          <Lines lines={poorer} label="Less detail than possible" />
        </details>
      )}
    </>
  );
}

interface Line {
  text: string;
  detail: string;
}

function Lines({ lines, label }: { lines: Line[]; label: string }) {
  return (
    <ul class="incomplete" aria-label={label}>
      {lines.map(({ text, detail }) => (
        <li key={text} title={detail}>
          {text}
        </li>
      ))}
    </ul>
  );
}
