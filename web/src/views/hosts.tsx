// SPDX-License-Identifier: Apache-2.0
import type { ComponentChildren } from "preact";
import type { HostIncident, HostUse } from "../api/types";
import { formatClock, formatCount, formatDuration, formatRangeUtc, formatShare } from "../format";
import { hostLink, type ChooseHost } from "../state/use-host";
import type { View } from "../state/view";
import type { ThemeChoice } from "../state/theme";
import { ThemePicker } from "./header";

interface Props {
  hosts: HostUse[];
  incidents: HostIncident[];
  // The server doesn't respond.
  lost: boolean;
  theme: ThemeChoice;
  onTheme: (choice: ThemeChoice) => void;
  onHost: ChooseHost;
  // Who is signed in.
  account: ComponentChildren;
  // About all hosts together.
  children: ComponentChildren;
}

// All hosts of `gpusonde serve`, each a link to its pages.
export function HostsPage({ hosts, incidents, lost, theme, onTheme, onHost, account, children }: Props) {
  const open = (event: MouseEvent, name: string, page?: View["page"]) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    onHost(name, page);
  };
  return (
    <div class="app">
      <header class="header">
        <h1>gpusonde</h1>
        <span class="host">{formatCount(hosts.length)} hosts</span>
        {lost && (
          <span class="live gone" role="status">
            disconnected
          </span>
        )}
        <span class="spring" />
        <ThemePicker theme={theme} onTheme={onTheme} />
        {account}
      </header>
      <table class="hosts">
        <thead>
          <tr>
            <th scope="col">Host</th>
            <th scope="col" class="figure">
              Last data
            </th>
            <th scope="col" class="figure">
              GPUs
            </th>
            <th scope="col" class="figure" title="Of the time observed in the last 15 minutes, with any GPU work">
              Busy
            </th>
            <th scope="col" class="figure" title="In the last 24 hours">
              Incidents
            </th>
            <th scope="col" class="figure">
              Stored
            </th>
          </tr>
        </thead>
        <tbody>
          {hosts.map((host) => (
            <tr key={host.name} title={host.error || undefined}>
              <th scope="row">
                <a href={hostLink(host.name)} onClick={(event) => open(event, host.name)}>
                  {host.name}
                </a>
              </th>
              <td class="figure" title={formatRangeUtc(host.last_seen_us, host.last_seen_us)}>
                <LastData host={host} />
              </td>
              <td class="figure">{host.gpus ?? "–"}</td>
              <td class="figure">{host.busy === null ? "–" : formatShare(host.busy, 1)}</td>
              <td class="figure">{host.incidents === null ? "–" : host.incidents > 0 ? <span class="alarm">{formatCount(host.incidents)}</span> : 0}</td>
              <td class="figure">{formatCount(Math.round(host.bytes / 1e6))} MB</td>
            </tr>
          ))}
        </tbody>
      </table>
      {incidents.length > 0 && <IncidentsOfAll incidents={incidents} onOpen={open} />}
      {children}
    </div>
  );
}

// The newest incidents of all hosts, each a link to those of its host.
function IncidentsOfAll({ incidents, onOpen }: { incidents: HostIncident[]; onOpen: (event: MouseEvent, host: string, page: View["page"]) => void }) {
  return (
    <table class="hosts host-incidents">
      <caption>Incidents of the last 24 hours</caption>
      <thead>
        <tr>
          <th scope="col">Began</th>
          <th scope="col">Host</th>
          <th scope="col">Program</th>
          <th scope="col" class="figure">
            Slower
          </th>
          <th scope="col">What happened</th>
        </tr>
      </thead>
      <tbody>
        {incidents.map((incident) => (
          <tr key={`${incident.host} ${incident.id}`}>
            <td title={formatRangeUtc(incident.from_us, incident.to_us ?? incident.from_us)}>{formatClock(incident.from_us)}</td>
            <th scope="row">
              <a href={hostLink(incident.host, "incidents")} onClick={(event) => onOpen(event, incident.host, "incidents")}>
                {incident.host}
              </a>
            </th>
            <td>
              {incident.name} ({incident.pid})
            </td>
            <td class="figure">{incident.slowdown.toFixed(1)}×</td>
            <td>{incident.sentence}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function LastData({ host: { last_seen_us: seen, silent } }: { host: HostUse }) {
  if (!silent) return <>{formatClock(seen)}</>;
  return <span class="alarm">silent for {formatDuration((Date.now() * 1000 - seen) * 1000)}</span>;
}
