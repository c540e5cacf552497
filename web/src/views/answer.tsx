// SPDX-License-Identifier: Apache-2.0
import type { ComponentChildren } from "preact";
import type { Summary } from "../api/types";
import { formatShare, lowerBound, unbroken } from "../format";
import type { Navigation } from "../state/use-view";
import { formatView, OTHER_PROFILE, type ProfileType, type View } from "../state/view";

interface Props {
  gpu: NonNullable<Summary["gpu"]>;
  view: View;
  opensOn: ProfileType;
  nav: Navigation;
  // Whether CPUs were sampled: traces of other profilers have no profile of CPU time.
  sampled: boolean;
}

const PROFILE: Partial<View> = { page: "profile", source: null, idle: false, wait: null, ...OTHER_PROFILE };

// How GPUs spent their time, in two lines: how busy they were and with what, how idle and why. Each line links to the
// detailed view.
export function GpuLines({ gpu, view, opensOn, nav, sampled }: Props) {
  const idle = Math.max(0, gpu.observed_ns - gpu.busy_ns);
  const gpus = gpu.devices > 1 ? `${gpu.devices} GPUs` : "GPU";
  const bound = lowerBound(gpu.partial_ns / Math.max(1, gpu.observed_ns));
  const waits = gpu.idle_cause === "waits";
  const [why, whyName]: [Partial<View>, string] = waits
    ? [{ type: "off_cpu" }, "Waiting"]
    : sampled
      ? [{ type: "cpu", idle: true }, "CPU time while idle"]
      : [{ page: "timeline" }, "Timeline"];
  const line = (what: string, sign: string, ns: number, why: string, to: Partial<View>, name: string) => (
    <AnswerLine
      label={`${gpus} ${what}`}
      figure={(bound ? sign : "") + formatShare(ns, gpu.observed_ns)}
      about={bound?.why}
      beside={<Bar part={ns / Math.max(1, gpu.observed_ns)} />}
      kind={what}
      to={name}
      here={view.page === (to.page ?? "profile") && view.type === to.type && view.idle === (to.idle ?? false)}
      href={formatView({ ...view, ...PROFILE, ...to }, opensOn) || "?"}
      onGo={() => nav.step({ ...PROFILE, ...to })}
    >
      {unbroken(why)}
    </AnswerLine>
  );
  return (
    <>
      {line("busy", "≥\u2009", gpu.busy_ns, gpu.busy, { type: "gpu" }, "GPU time")}
      {line("idle", "≤\u2009", idle, gpu.idle, why, whyName)}
    </>
  );
}

function Bar({ part }: { part: number }) {
  return (
    <span class="answer-bar" aria-hidden="true">
      <span style={{ width: `${100 * part}%` }} />
    </span>
  );
}

interface LineProps {
  label: string;
  figure: string;
  about?: string | undefined;
  // Beside the figure: its bar, or whose it is.
  beside: ComponentChildren;
  kind: string;
  to: string;
  here: boolean;
  href: string;
  onGo: () => void;
  children: string;
}

// One line of the answer, a link to what shows it in detail.
export function AnswerLine({ label, figure, about, beside, kind, to, here, href, onGo, children }: LineProps) {
  const go = (event: MouseEvent) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    onGo();
  };
  return (
    <a class={`answer-line ${kind}`} href={href} aria-current={here ? "true" : undefined} onClick={go}>
      <span class="answer-label">{label}</span>
      <strong class="answer-share figure" title={about}>
        {figure}
      </strong>
      {beside}
      <span class="answer-why" title={children}>
        {children}
      </span>
      <span class="answer-to">
        {to} <span aria-hidden="true">→</span>
      </span>
    </a>
  );
}
