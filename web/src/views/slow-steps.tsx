// SPDX-License-Identifier: Apache-2.0
import type { Incident, Incidents, Program } from "../api/types";
import { formatCount, formatRange, formatTime, unbroken, withLocalClock } from "../format";
import type { Navigation } from "../state/use-view";
import { formatView, type ProfileType, type View } from "../state/view";
import { AnswerLine } from "./answer";
import { disturbancesOf, LoopName, stateOf, type Seen } from "./incidents";

interface Props {
  found: Incidents;
  seen: Seen;
  view: View;
  opensOn: ProfileType;
  nav: Navigation;
}

// What made steps slow, above how the GPUs spent their time: the incident that lasts, or else the newest one, and what
// disturbs all steps of a program. Each line links to the incidents; null without any.
export function slowLines({ found, seen, view, opensOn, nav }: Props) {
  const incidents = found.incidents.filter((incident) => isSelected(incident.process, view) && isThen(incident, view));
  // Below 1, steps are back to normal, and an open one is about to end. A hung collective has no slowdown: 1.
  const slow = incidents.filter(({ slowdown }) => slowdown >= 1);
  const incident = slow.find((one) => stateOf(one, seen) === "Ongoing") ?? slow[0];
  const disturbed = mostDisturbed(found.programs.filter(({ process }) => isSelected(process, view)));
  if (!incident && !disturbed) return null;
  const page: Partial<View> = { page: "incidents", source: null };
  const link = {
    to: incidents.length > 1 ? `${formatCount(incidents.length)} incidents` : "Incidents",
    here: false,
    href: formatView({ ...view, ...page }, opensOn),
    onGo: () => nav.step(page),
  };
  const ongoing = incident && stateOf(incident, seen) === "Ongoing";
  return (
    <>
      {incident && (
        <AnswerLine {...link} kind={ongoing ? "slow ongoing" : "slow"} label={ongoing ? "Steps slow now" : "Steps were slow"} figure={incident.slowdown > 1 ? `${incident.slowdown.toFixed(1)}×` : ""} beside={<Whose of={incident} />}>
          {`${ongoing ? `since ${formatTime(incident.from_us)}` : timeOf(incident)}: ${unbroken(causeOf(incident))}`}
        </AnswerLine>
      )}
      {disturbed && (
        <AnswerLine {...link} to="Usual steps" kind="slow" label="Every step" figure="" beside={<Whose of={disturbed.program} />}>
          {unbroken(disturbed.sentence)}
        </AnswerLine>
      )}
    </>
  );
}

function Whose({ of }: { of: Incident | Program }) {
  return (
    <span class="answer-whose">
      <LoopName of={of} />
    </span>
  );
}

function isSelected(process: string, { processes }: View): boolean {
  return processes.length === 0 || processes.includes(process);
}

function isThen({ from_us, to_us }: Incident, { brush }: View): boolean {
  return brush === null || (from_us < brush.to && (to_us ?? Infinity) > brush.from);
}

function timeOf({ from_us, to_us, shown_to_us }: Incident): string {
  return formatRange(from_us, to_us ?? shown_to_us ?? from_us + 1);
}

// The sentence without what the line says before it.
function causeOf({ sentence, from_us }: Incident): string {
  return withLocalClock(sentence, from_us).replace(/^Steps(?: of thread \d+)? slowed [\d.]+× from \d\d:\d\d:\d\d\. /, "");
}

// What takes the largest part of a program's steps.
function mostDisturbed(programs: Program[]): { program: Program; sentence: string } | null {
  const all = programs.flatMap((program) => disturbancesOf(program).map(({ time_ns, sentence }) => ({ program, sentence, share: time_ns / Math.max(program.step_ns, 1) })));
  return all.sort((a, b) => b.share - a.share)[0] ?? null;
}
