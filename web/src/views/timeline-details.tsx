// SPDX-License-Identifier: Apache-2.0
import type { ComponentChildren } from "preact";
import { apiUrl } from "../api/client";
import type { Work } from "../api/types";
import { formatBytes, formatCount, formatDuration } from "../format";
import { printable } from "../printable";
import { useResource, type Asked } from "../state/use-resource";
import { threadLabel } from "../timeline/layout";
import type { Picked, whyNot } from "../timeline/pick";
import { exactNs, formatMoment } from "../timeline/span";
import { SliceTimes } from "./timeline-tooltip";

const same = (work: Work): Work => work;

// What is known about the picked piece of GPU work; nothing is asked about other slices.
export function useWork(picked: Picked | null, originUs: number, ofHost: Record<string, string>) {
  const asked = picked && workAsked(picked, originUs, ofHost);
  const resource = useResource<Work, Work>(asked, "", same);
  const isAnswer = asked !== null && resource.question === asked.question;
  return { work: isAnswer ? resource.data : null, error: asked && !resource.loading ? resource.error : null, loading: asked !== null && resource.loading };
}

function workAsked({ track, from, kind, description }: Picked, originUs: number, ofHost: Record<string, string>): Asked | null {
  // What begins at a sum's start is only one of several.
  const isSum = description.kind === "";
  if (isSum || track.kind !== "stream" || !["kernel", "memcpy", "memset"].includes(kind)) return null;
  const url = apiUrl("work", { process: track.process, device: track.device!, stream: track.stream! }, { ...ofHost, start_ns: exactNs(from, originUs) });
  return { url, question: url };
}

interface Props {
  picked: Picked;
  originUs: number;
  found: ReturnType<typeof useWork>;
  onSelect: () => void;
  onProfile: () => void;
  onClose: () => void;
}

// The panel below the timeline: the picked slice, and of GPU work its launch.
export function TimelineDetails({ picked, originUs, found, onSelect, onProfile, onClose }: Props) {
  const { description } = picked;
  const { work } = found;
  const isWork = picked.track.kind === "stream";
  return (
    <section class="timeline-details" aria-label="Details" aria-live="polite">
      <header>
        <h2>{description.title}</h2>
        <button type="button" class="plain" onClick={onSelect} title="Zoom to it, and select its time on every page">
          Select this time
        </button>
        <button type="button" class="plain" onClick={onProfile} title={isWork ? "GPU time of the selection, with this function highlighted" : "The profile of its time"}>
          {isWork ? "Show in profile" : "Profile of this time"}
        </button>
        <button type="button" class="quiet" aria-label="Close the details" title="Close (Esc)" onClick={onClose}>
          ✕
        </button>
      </header>
      <div class="timeline-facts">
        <table>
          <tbody>
            <Fact label={description.kind || "where"}>{description.where}</Fact>
            <SliceTimes described={description} moment={formatMoment(picked.from, originUs, 1)} />
            {work && <WorkFacts work={work.work} />}
          </tbody>
        </table>
        {work && <Launch launch={work.launch} graph={work.work.graph_node !== null && work.work.graph_node !== undefined} />}
        {found.loading && <p class="dim">Reading its launch…</p>}
        {found.error && <p class="dim">{found.error.message}</p>}
      </div>
    </section>
  );
}

const LOST: Record<ReturnType<typeof whyNot>, string> = {
  elsewhere: "It is outside the time that is shown.",
  short: "It is too short to be shown alone at this zoom.",
  gone: "Nothing of this length starts there any more: it was deleted, the selection leaves it out, or it stood for several shorter events.",
};

// In the place of the details: the address has a slice that is not in the answer.
export function SliceLost({ why, onGo, onClose }: { why: ReturnType<typeof whyNot>; onGo: () => void; onClose: () => void }) {
  return (
    <section class="timeline-details" aria-label="Details" aria-live="polite">
      <header>
        <h2>The slice of this link is not here</h2>
        <button type="button" class="plain" onClick={onGo}>
          Go to its time
        </button>
        <button type="button" class="quiet" aria-label="Close the details" title="Close (Esc)" onClick={onClose}>
          ✕
        </button>
      </header>
      <p class="dim">{LOST[why]}</p>
    </section>
  );
}

function Fact({ label, children }: { label: string; children: ComponentChildren }) {
  return (
    <tr>
      <th scope="row">{label}</th>
      <td>{children}</td>
    </tr>
  );
}

const DIRECTIONS: Record<string, string> = {
  htod: "host to device", dtoh: "device to host", dtod: "on the device", ptop: "device to device", htoh: "on the host", unknown: "",
};

function WorkFacts({ work }: { work: Work["work"] }) {
  const product = (sizes: number[]) => sizes.map((size) => formatCount(size)).join(" × ");
  // Traces have zeros where the shape is not known.
  const hasShape = work.grid && work.block && [...work.grid, ...work.block].every((size) => size > 0);
  const memories = [work.source_memory, work.target_memory].filter(Boolean).join(" → ");
  return (
    <>
      {hasShape && (
        <Fact label="grid, block">
          {product(work.grid!)} blocks of {product(work.block!)} threads
        </Fact>
      )}
      {typeof work.registers === "number" && <Fact label="registers">{formatCount(work.registers)} a thread</Fact>}
      {typeof work.shared_bytes === "number" && <Fact label="shared memory">{formatBytes(work.shared_bytes)} a block</Fact>}
      {work.bytes !== undefined && (
        <Fact label="size">
          {formatBytes(work.bytes)}
          {work.duration_ns > 0 && <span class="dim"> at {formatBytes((work.bytes * 1e9) / work.duration_ns)}/s</span>}
        </Fact>
      )}
      {work.copy && (
        <Fact label="direction">
          {DIRECTIONS[work.copy] ?? work.copy} {memories && <span class="dim">{memories}</span>}
        </Fact>
      )}
      {typeof work.graph_node === "number" && <Fact label="CUDA graph">node {work.graph_node}</Fact>}
    </>
  );
}

function Launch({ launch, graph }: { launch: Work["launch"]; graph: boolean }) {
  if (!launch) return <p class="dim">{graph ? "Part of a CUDA graph: no call launched it alone." : "The call that launched it was not recorded."}</p>;
  const wait = formatDuration(Math.abs(launch.before_ns));
  return (
    <div class="timeline-launch">
      <p>
        Launched <strong>{wait}</strong> {launch.before_ns < 0 ? "after" : "before"} it started, by <strong>{printable(launch.name)}</strong> ({formatDuration(launch.duration_ns)}) on{" "}
        {threadLabel(launch)}.
      </p>
      {launch.stack.length === 0 ? (
        <p class="dim">The stack of this call was not sampled.</p>
      ) : (
        <ol aria-label="Stack of the launch, outermost first">
          {launch.stack.map((frame, i) => (
            <li key={i}>{printable(frame)}</li>
          ))}
        </ol>
      )}
    </div>
  );
}
