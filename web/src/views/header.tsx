// SPDX-License-Identifier: Apache-2.0
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { DeviceUse, HostUse, Overview, Process } from "../api/types";
import { formatDuration, formatRange, formatRangeUtc, formatShare, formatTime, formatUtc, lowerBound } from "../format";
import { printable } from "../printable";
import type { ThemeChoice } from "../state/theme";
import type { Navigation } from "../state/use-view";
import { lastOf, LIVE_SECONDS, type Range, type View } from "../state/view";
import { ProcessPicker } from "./process-picker";
import { Simulated } from "./simulated";

// Where the data is from. A host has one source for each time that it was profiled; traces don't say theirs.
export function nameOf({ sources, title }: Overview): string {
  const hosts = new Set(sources.map(({ host }) => host));
  return printable((hosts.size === 1 && sources[0]!.host) || title);
}

interface Props {
  overview: Overview;
  // Of `gpusonde serve`; the picker is shown if there is more than one.
  hosts: HostUse[];
  host: string | null;
  onHost: (host: string | null) => void;
  // Null until they are read.
  processes: Process[] | null;
  devices: DeviceUse[];
  // The server doesn't respond.
  lost: boolean;
  // Seconds since new data arrived.
  ageS: number;
  // The time range of all data, and the part that the strips cover.
  available: Range | null;
  window: Range | null;
  view: View;
  nav: Navigation;
  theme: ThemeChoice;
  onTheme: (choice: ThemeChoice) => void;
  onHelp: () => void;
  // Who is signed in.
  account: ComponentChildren;
}

// The selection, which applies to every page.
export function Header({ overview, hosts: choices, host, onHost, lost, ageS, processes, devices, available, window, view, nav, theme, onTheme, onHelp, account }: Props) {
  const hosts = overview.sources.map(({ host, kind, hz }) => `${printable(host || overview.title)} (${kind}${hz === null ? "" : `, ${hz} Hz`})`);
  return (
    <header class="header">
      <h1 title={`gpusonde ${overview.version}`}>gpusonde</h1>
      {choices.length > 1 ? (
        <Choice label="Host" value={host ?? ""} onChoose={(name) => onHost(name || null)}>
          <option value="">All hosts</option>
          {choices.map(({ name }) => (
            <option key={name} value={name}>
              {printable(name)}
            </option>
          ))}
        </Choice>
      ) : (
        <span class="host" title={hosts.join("\n")}>
          {nameOf(overview)}
        </span>
      )}
      {lost ? (
        <span class="live gone" role="status" title="The server does not respond; the page retries every 2 seconds">
          disconnected
        </span>
      ) : (
        overview.live && <Live overview={overview} ageS={ageS} />
      )}
      {overview.simulated && <Simulated title="Some of this data comes from the simulated GPU, not from hardware" />}
      {available && <StackChoices processes={processes} view={view} nav={nav} />}
      {available && (devices.length > 0 || view.device) && <DeviceChoices devices={devices} view={view} nav={nav} />}
      {available && <Filter view={view} nav={nav} />}
      <span class="spring" />
      {available && window && <TimeWindow available={available} window={window} live={overview.live} view={view} nav={nav} />}
      <ThemePicker theme={theme} onTheme={onTheme} />
      <button type="button" class="plain help-button" aria-label="Keys and pointer" title="Keys (?)" onClick={onHelp}>
        ?
      </button>
      {account}
    </header>
  );
}

// A page whose data is older says how old.
const FRESH_S = 10;

function Live({ overview: { silent, to_us: to }, ageS }: { overview: Overview; ageS: number }) {
  if (silent && to !== null) {
    return (
      <span class="live gone" title={`No data has arrived since ${formatUtc(to)}. Is the agent still running?`}>
        silent since {formatTime(to)}
      </span>
    );
  }
  if (ageS < FRESH_S) {
    return (
      <span class="live" title="New data is shown as it arrives">
        live
      </span>
    );
  }
  const age = ageS < 60 ? `${Math.floor(ageS)} s` : `${Math.floor(ageS / 60)} min`;
  const why = "Data is refreshed rarely enough that open pages use at most 2 % of a CPU";
  return (
    <button type="button" class="quiet live" title={`Fetched ${age} ago. ${why}. Click to fetch it now`} onClick={() => location.reload()}>
      live, {age} behind
    </button>
  );
}

export function ThemePicker({ theme, onTheme }: { theme: ThemeChoice; onTheme: (choice: ThemeChoice) => void }) {
  return (
    <Choice label="Theme" value={theme} onChoose={(choice) => onTheme(choice as ThemeChoice)}>
      <option value="auto">Auto</option>
      <option value="light">Light</option>
      <option value="dark">Dark</option>
    </Choice>
  );
}

// The choice of processes, and of a thread of the only one.
function StackChoices({ processes, view, nav }: { processes: Process[] | null; view: View; nav: Navigation }) {
  const process = processes?.find(({ id }) => id === view.processes[0]);
  return (
    <>
      <ProcessPicker processes={processes} chosen={view.processes} onChoose={(processes) => nav.step({ processes, tid: null, zoom: null })} />
      {view.processes.length === 1 && (
        <Choice label="Thread" value={String(view.tid ?? "")} onChoose={(tid) => nav.step({ tid: tid ? Number(tid) : null, zoom: null })}>
          <option value="">All threads</option>
          {process?.threads.map((t) => (
            <option key={t.tid} value={t.tid}>
              {printable(t.name)} {t.tid} · {formatDuration(t.cpu_ns)}
            </option>
          ))}
          {view.tid !== null && !process?.threads.some(({ tid }) => tid === view.tid) && <option value={view.tid}>{view.tid}</option>}
        </Choice>
      )}
    </>
  );
}

// The choice of a device and stream; for CPU time while idle, the device that must be idle.
function DeviceChoices({ devices, view, nav }: { devices: DeviceUse[]; view: View; nav: Navigation }) {
  const device = devices.find((d) => d.device === view.device);
  return (
    <>
      <Choice label="Device" value={view.device ?? ""} onChoose={(id) => nav.step({ device: id || null, stream: null, zoom: null })}>
        <option value="">All GPUs</option>
        {devices.map((d) => (
          <option key={d.device} value={d.device} title={d.uuid}>
            {printable(d.label)} · {d.name || "unknown"} · {lowerBound(d.partial_ns / Math.max(1, d.observed_ns))?.sign}
            {formatShare(d.busy_ns, d.observed_ns)} busy
          </option>
        ))}
        {view.device && !device && <option value={view.device}>{view.device.slice(0, 8)}… (not there)</option>}
      </Choice>
      {view.device && (
        <Choice label="Stream" value={String(view.stream ?? "")} onChoose={(stream) => nav.step({ stream: stream ? Number(stream) : null, zoom: null })}>
          <option value="">All streams</option>
          {device?.streams.map(({ stream, busy_ns }) => (
            <option key={stream} value={stream}>
              stream {stream} · {formatDuration(busy_ns)}
            </option>
          ))}
          {view.stream !== null && !device?.streams.some(({ stream }) => stream === view.stream) && (
            <option value={view.stream}>stream {view.stream}</option>
          )}
        </Choice>
      )}
    </>
  );
}

function Choice({ label, value, onChoose, children }: { label: string; value: string; onChoose: (value: string) => void; children: ComponentChildren }) {
  return (
    <select aria-label={label} title={label} class={`choice ${label.toLowerCase()}`} value={value} onChange={(event) => onChoose(event.currentTarget.value)}>
      {children}
    </select>
  );
}

// The server applies it, so it takes effect on Enter or when the field loses the focus.
function Filter({ view, nav }: { view: View; nav: Navigation }) {
  const [text, setText] = useState(view.filter);
  useEffect(() => setText(view.filter), [view.filter]);
  const commit = (filter: string) => {
    if (filter !== view.filter) nav.step({ filter, zoom: null });
  };
  return (
    <form
      class="filter"
      onSubmit={(event) => {
        event.preventDefault();
        commit(text);
      }}
    >
      <input
        type="search"
        aria-label="Only stacks with a frame whose name contains this"
        title="Only stacks with a frame whose name contains this"
        placeholder="Filter stacks"
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
        onBlur={() => commit(text)}
        onSearch={(event) => commit((event.currentTarget as HTMLInputElement).value)}
      />
    </form>
  );
}

const WINDOWS: [seconds: number, label: string][] = [
  [60, "last 1 min"],
  [300, "last 5 min"],
  [900, "last 15 min"],
  [3600, "last 1 h"],
  [21600, "last 6 h"],
  [86400, "last 24 h"],
];

// The view's value for a choice; null for the default.
function lastFor(choice: string, live: boolean): View["last"] {
  const last = choice === "all" ? "all" : Number(choice);
  return last === (live ? LIVE_SECONDS : "all") ? null : last;
}

interface TimeWindowProps {
  available: Range;
  window: Range;
  live: boolean;
  view: View;
  nav: Navigation;
}

function TimeWindow({ available, window, live, view, nav }: TimeWindowProps) {
  const length = (available.to - available.from) / 1e6;
  // A window longer than the data is the same as all of it.
  const chosen = lastOf(view, live);
  const offered = WINDOWS.filter(([seconds]) => seconds < length || seconds === chosen);
  // A link may have any.
  if (chosen !== null && !offered.some(([seconds]) => seconds === chosen)) offered.push([chosen, `last ${formatDuration(chosen * 1e9)}`]);
  return (
    <>
      {view.brush ? (
        <span class="chip brush figure" title={formatRangeUtc(view.brush.from, view.brush.to)}>
          {formatRange(view.brush.from, view.brush.to)}
          <span class="dim">{formatDuration((view.brush.to - view.brush.from) * 1000)}</span>
          <button type="button" class="quiet" aria-label="Show the whole time" title="Show the whole time (double click on the strip)" onClick={() => nav.step({ brush: null })}>
            ✕
          </button>
        </span>
      ) : (
        <span class="figure range" title={formatRangeUtc(window.from, window.to)}>
          {formatRange(window.from, window.to)}
        </span>
      )}
      <Choice label="Time" value={String(chosen ?? "all")} onChoose={(seconds) => nav.step({ last: lastFor(seconds, live), brush: null })}>
        <option value="all">all {formatDuration(length * 1e9)}</option>
        {offered.map(([seconds, label]) => (
          <option key={seconds} value={seconds}>
            {label}
          </option>
        ))}
      </Choice>
    </>
  );
}
