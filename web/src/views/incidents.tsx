// SPDX-License-Identifier: Apache-2.0
import type { Account, Incident, Incidents, IncidentStrip, Overview, Program, Warning } from "../api/types";
import { formatCount, formatDuration, formatRange, formatShare, formatTime, threeDigits, unbroken, withLocalClock } from "../format";
import { printable } from "../printable";
import { DEFAULT_VIEW, type View } from "../state/view";
import type { Navigation } from "../state/use-view";
import { HowToProfileGpuWork, Message } from "./states";

// What is known of the data's end.
export type Seen = Pick<Overview, "live" | "silent" | "kernels"> & { lost: boolean };

// Incidents (when steps were slow, and why), newest first. `lost`: the server doesn't respond.
export function IncidentsPage({ found, overview: all, lost, nav }: { found: Incidents; overview: Overview; lost: boolean; nav: Navigation }) {
  const overview: Seen = { ...all, lost };
  if (found.incidents.length === 0 && found.programs.length === 0) {
    return (
      <>
        {found.warnings.length > 0 && (
          <div class="incidents">
            <Warnings warnings={found.warnings} overview={overview} />
          </div>
        )}
        <NoIncidents steps={found.steps} overview={all} />
      </>
    );
  }
  return (
    <div class="incidents">
      <Warnings warnings={found.warnings} overview={overview} />
      {found.incidents.length === 0 && (
        <p>
          <b>No step was slow.</b> {formatCount(found.steps)} steps were checked; none took longer than usual for its type.
        </p>
      )}
      {found.incidents.map((incident) => (
        <IncidentCard key={incident.id} incident={incident} overview={overview} nav={nav} />
      ))}
      <Programs programs={found.programs} />
      {found.omitted > 0 && <p class="dim">{formatCount(found.omitted)} older ones are not shown. Select less time to see them.</p>}
    </div>
  );
}

// Warnings of leading indicators, with the incident that followed.
function Warnings({ warnings, overview }: { warnings: Warning[]; overview: Seen }) {
  if (warnings.length === 0) return null;
  return (
    <ul class="warnings" aria-label="Warnings">
      {warnings.map((warning) => (
        <li key={warning.id}>
          <span class={stateOf(warning, overview) === "Ongoing" ? "alarm" : "dim"}>Warning</span> <span class="figure">{timeOf(warning, overview)}</span>:{" "}
          {unbroken(warning.sentence).replace(/\.?$/, ".")}{" "}
          <span class="dim">{outcomeOf(warning)}</span>
        </li>
      ))}
    </ul>
  );
}

function timeOf(warning: Warning, overview: Seen): string {
  if (warning.to_us !== null) return formatRange(warning.from_us, warning.to_us);
  const state = stateOf(warning, overview);
  const from = formatTime(warning.from_us);
  return state === "Ongoing" ? `since ${from}` : `from ${from} ${state.toLowerCase()}`;
}

function outcomeOf({ lead_us: lead }: Warning): string {
  if (lead === null) return "No incident followed.";
  const length = formatDuration(Math.abs(lead) * 1e3);
  return lead >= 0 ? `Issued ${length} before steps slowed.` : `Issued ${length} after steps had slowed: too late.`;
}

// Of each type of steps, as many say what is usual.
const LEARNED_STEPS = 20;

function NoIncidents({ steps, overview }: { steps: number; overview: Overview }) {
  if (steps > 0 && steps <= LEARNED_STEPS) {
    return (
      <Message title="Too few steps to compare" kind="empty">
        <p>
          {formatCount(steps)} {steps === 1 ? "step was" : "steps were"} found. The first twenty of a program say what is usual; later ones are
          compared with them.
        </p>
      </Message>
    );
  }
  if (steps > 0) {
    return (
      <Message title="No step was slow" kind="empty">
        <p>
          {formatCount(steps)} steps were checked; none took longer than usual for its type. The first twenty of a program say what
          is usual.
        </p>
      </Message>
    );
  }
  return (
    <Message title="No steps in this selection" kind="empty">
      <p>
        gpusonde finds steps in a program&rsquo;s GPU work by something that occurs once per step: an NVTX range, a wait or a kernel. A program
        needs about thirty steps before a slow one can be recognised.
      </p>
      {overview.kernels > 0 ? (
        <p>There is GPU work, but no steps were found in it: it lasts too short, doesn’t repeat, or wasn’t profiled all the time.</p>
      ) : (
        <HowToProfileGpuWork overview={overview} />
      )}
    </Message>
  );
}

// The program whose steps they are, and the thread if they are those of one of several loops in it.
export function LoopName({ of: { name, pid, tid } }: { of: Pick<Program, "name" | "pid" | "tid"> }) {
  return (
    <>
      {printable(name)} <span class="dim">{tid === 0 ? pid : `${pid}, thread ${tid}`}</span>
    </>
  );
}

const MAX_PROGRAMS = 8;

// The parts of all steps of a program that something else caused, each with a sentence.
export function disturbancesOf({ parts }: Program): Program["parts"] {
  return parts.filter(({ sentence }) => sentence !== "");
}

// What steps usually do, and what disturbs all of them: those that are disturbed first.
function Programs({ programs }: { programs: Program[] }) {
  const shown = [...programs].sort((a, b) => Number(disturbancesOf(b).length > 0) - Number(disturbancesOf(a).length > 0)).slice(0, MAX_PROGRAMS);
  return (
    <>
      {shown.map((program) => (
        <article class={disturbancesOf(program).length > 0 ? "incident" : "incident calm"} key={`${program.process}.${program.tid}`} aria-label={`Usual steps of ${printable(program.name)}`}>
          <header>
            <span class="dim">Usual steps</span>
            <span>
              <LoopName of={program} />
            </span>
            <span class="dim figure">{formatCount(program.steps)} steps</span>
          </header>
          {disturbancesOf(program).map(({ signal, sentence }) => (
            <p class="sentence" key={signal}>
              {unbroken(sentence)}
            </p>
          ))}
          {program.between_ns > program.step_ns / 100 && <p class="dim">{betweenOf(program)}</p>}
          {program.kinds.length > 0 && <p class="dim">{kindsOf(program)}</p>}
          <UsualBar program={program} />
        </article>
      ))}
      {programs.length > MAX_PROGRAMS && <p class="dim">{formatCount(programs.length - MAX_PROGRAMS)} more programs have steps. Select one to see its steps.</p>}
    </>
  );
}

// "Steps of 2 kinds: 849 of 23.0 ms; from 10:08:11 on 300 of 57.0 ms". Those that launch more are no slow ones, but may
// be why a program takes longer.
function kindsOf({ kinds }: Program): string {
  const parts = kinds.map(({ steps, mean_ns, from_us }, i) => {
    const follows = i > 0 && kinds.slice(0, i).every(({ to_us }) => to_us <= from_us);
    return `${follows ? `from ${formatTime(from_us)} on ` : ""}${formatCount(steps)} of ${formatDuration(mean_ns)}`;
  });
  return `Steps of ${kinds.length} kinds, by what they launch: ${parts.join("; ")}`;
}

// "Waits 11.3 ms before each step (87 % of its time), as a server does for requests: not part of the step."
function betweenOf({ between_ns: between, step_ns: step }: Program): string {
  return `Waits ${formatDuration(between)} before each step (${formatShare(between, between + step)} of its time), as a server does for requests: not part of the step.`;
}

function UsualBar({ program }: { program: Program }) {
  const total = Math.max(program.step_ns, 1);
  const parts = program.parts.map(({ time_ns: ns, ...part }) => ({ ...part, ns }));
  return (
    <div class="account">
      <AccountRow when="usual" total={program.step_ns} most={total} parts={parts} />
      <AccountLegend parts={parts.filter(({ ns }) => ns > total / 200).map(({ ns, ...part }) => ({ ...part, text: formatDuration(ns) }))} />
    </div>
  );
}

// Whether it is over, as far as the data tell.
export function stateOf({ to_us: to }: Incident | Warning, overview: Seen): string {
  if (to !== null) return "Ended";
  if (!overview.live) return "Until the end of the recording";
  if (overview.lost) return "Ongoing when last read";
  return overview.silent ? "Until its data ended" : "Ongoing";
}

function IncidentCard({ incident, overview, nav }: { incident: Incident; overview: Seen; nav: Navigation }) {
  const to = incident.to_us ?? incident.shown_to_us ?? incident.from_us + 1;
  const state = stateOf(incident, overview);
  // Of all programs of the host, as another one often caused the slow-down.
  const show = (page: View["page"]) => nav.step(({ host, last }) => ({ ...DEFAULT_VIEW, host, last, page, brush: { from: incident.from_us, to } }));
  const sentence = unbroken(withLocalClock(incident.sentence, incident.from_us));
  const others = incident.causes.filter(({ signal }) => signal !== incident.cause && signal !== "");
  return (
    <article class="incident" aria-label={sentence}>
      <header>
        <span class={state === "Ongoing" ? "alarm" : "dim"}>{state}</span>
        <span class="figure">{state === "Ongoing" ? `since ${formatTime(incident.from_us)}` : formatRange(incident.from_us, to)}</span>
        <span>
          <LoopName of={incident} />
        </span>
        <span class="spring" />
        <button type="button" class="plain" onClick={() => show("profile")} title="The profile of all programs at that time">
          Flame graph of that time
        </button>
        <button type="button" class="plain" onClick={() => show("timeline")} title="Kernels, calls and threads of all programs at that time">
          Timeline
        </button>
      </header>
      <p class="sentence">{sentence}</p>
      <AccountBars account={incident.account} isLater={incident.before_is_later} />
      <div class="evidence-strips">
        {incident.strips.map((strip) => (
          <EvidenceStrip key={strip.label} strip={strip} incident={incident} to={to} />
        ))}
      </div>
      {others.length > 0 && (
        <details>
          <summary>Other signals</summary>
          <ul>
            {others.map(({ signal, sentence, during }) => (
              <li key={signal}>
                {unbroken(sentence)} <span class="dim">{formatShare(during ?? 0, 1)} of the excess</span>
              </li>
            ))}
          </ul>
        </details>
      )}
      {incident.evidence.length > 0 && (
        <details>
          <summary>Evidence</summary>
          <ul>
            {incident.evidence.map(({ signal, sentence, before, during }) => (
              <li key={signal}>
                {unbroken(sentence)}{" "}
                <span class="dim">{inOrder(before, during, incident.before_is_later, threeDigits)}</span>
              </li>
            ))}
          </ul>
        </details>
      )}
    </article>
  );
}

// The parts of a step before and during the incident, or if that is all that is known, during and after it: two bars on
// one scale, in the order of time.
function AccountBars({ account, isLater }: { account: Account[]; isLater: boolean }) {
  const sum = (of: "before" | "during") => account.reduce((total, part) => total + Math.max(part[of] ?? 0, 0), 0);
  const most = Math.max(sum("before"), sum("during"), 1);
  const parts = [...account].sort((a, b) => (b.during ?? 0) - (b.before ?? 0) - ((a.during ?? 0) - (a.before ?? 0)));
  return (
    <div class="account">
      {(isLater ? (["during", "before"] as const) : (["before", "during"] as const)).map((of) => (
        <AccountRow key={of} when={of === "before" && isLater ? "after" : of} total={sum(of)} most={most} parts={account.map(({ [of]: ns, ...part }) => ({ ...part, ns: ns ?? 0 }))} />
      ))}
      <AccountLegend
        parts={parts
          .filter(({ before, during }) => Math.max(before ?? 0, during ?? 0) > most / 200)
          .map(({ signal, label, before, during }) => ({ signal, label, text: inOrder(before, during, isLater, formatDuration) }))}
      />
    </div>
  );
}

// "1.20 ms → 31.0 ms", the earlier first.
function inOrder(before: number | null, during: number | null, isLater: boolean, format: (value: number) => string): string {
  const values = isLater ? [during, before] : [before, during];
  return values.map((value) => format(value ?? 0)).join(" → ");
}

// A bar of the parts of a step, ns; `most` is the length of the scale.
function AccountRow({ when, total, most, parts }: { when: string; total: number; most: number; parts: { signal: string; label: string; ns: number }[] }) {
  return (
    <div class="account-row">
      <span class="account-when dim">{when}</span>
      <div class="account-bar" role="img" aria-label={`${when}: ${formatDuration(total)} a step`}>
        {parts.map(({ signal, label, ns }) => (
          <span
            key={signal}
            class={`account-part state-${signal}`}
            style={{ width: `${(100 * Math.max(ns, 0)) / most}%` }}
            title={`${label}: ${formatDuration(ns)} of a step`}
          />
        ))}
      </div>
      <span class="figure">{formatDuration(total)}</span>
    </div>
  );
}

function AccountLegend({ parts }: { parts: { signal: string; label: string; text: string }[] }) {
  return (
    <ul class="account-legend">
      {parts.map(({ signal, label, text }) => (
        <li key={signal}>
          <span class={`swatch state-${signal}`} aria-hidden="true" />
          {label} <span class="dim figure">{text}</span>
        </li>
      ))}
    </ul>
  );
}

const WIDTH = 600;
const HEIGHT = 36;

// A signal around the incident, with the incident's time marked.
function EvidenceStrip({ strip, incident, to }: { strip: IncidentStrip; incident: Incident; to: number }) {
  const from = incident.shown_from_us ?? incident.from_us;
  const span = Math.max((incident.shown_to_us ?? to) - from, 1);
  const most = Math.max(...strip.values.map((value) => value ?? 0), 0);
  const at = (us: number) => (WIDTH * (us - from)) / span;
  const step = WIDTH / strip.values.length;
  const bars = strip.values
    .map((value, i) => (value === null ? "" : `M${(i * step).toFixed(1)} ${HEIGHT}V${(HEIGHT - (HEIGHT * value) / (most || 1)).toFixed(1)}h${step.toFixed(2)}V${HEIGHT}z`))
    .join("");
  const text = strip.unit === "ns" ? formatDuration(most) : `${Number.isInteger(most) ? formatCount(most) : threeDigits(most)} ${strip.unit}`;
  return (
    <div class="evidence-strip">
      <span class="evidence-label">
        {strip.label} <span class="dim figure">up to {text}</span>
      </span>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={`${strip.label} around the incident, up to ${text}`}>
        <rect class="incident-time" x={at(incident.from_us)} width={Math.max(at(to) - at(incident.from_us), 1)} y="0" height={HEIGHT} />
        <path d={bars} />
      </svg>
    </div>
  );
}
