// SPDX-License-Identifier: Apache-2.0
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { HostIncident, HostUse } from "../api/types";
import { formatCount, formatDuration, formatRangeUtc, formatShare, formatTime, formatUtc, unbroken, withLocalClock } from "../format";
import { narrowLongNames } from "../flamegraph/names";
import { printable } from "../printable";
import { hasProblem, orderHosts, type HostOrder } from "../state/host-order";
import { hostLink, type ChooseHost, type Opening } from "../state/use-host";
import type { Problem } from "../state/use-host-data";
import type { ThemeChoice } from "../state/theme";
import { ThemePicker } from "./header";
import { Notices, Problems } from "./states";

// So many lines are shown at first: who is on call looks at the worst, not at all.
const MAX_HOSTS = 25;
const MAX_INCIDENTS = 10;
// The incidents of the same time as those of all hosts: an older one isn't in the window that pages open with.
const INCIDENTS: Opening = { page: "incidents", last: 86_400 };
// The characters of a host's name for which its column has room (styles/hosts.css).
const FITS = 30;
// From so many hosts on they can be filtered.
const MANY_HOSTS = 6;

interface Column {
  order: HostOrder;
  title: string;
  hint?: string;
  className?: string;
}

const COLUMNS: Column[] = [
  { order: "name", title: "Host" },
  { order: "seen", title: "Last data", className: "figure" },
  { order: "gpus", title: "GPUs", className: "figure" },
  { order: "busy", title: "Busy", hint: "Of the time observed in the last 15 minutes, with any GPU work", className: "figure" },
  { order: "idle", title: "Held idle", hint: "GPU time of the last 24 hours in which processes or pods held GPUs that did nothing", className: "figure" },
  { order: "incidents", title: "Incidents", hint: "In the last 24 hours", className: "figure" },
  { order: "stored", title: "Stored", className: "figure stored" },
];

interface Props {
  hosts: HostUse[];
  incidents: HostIncident[];
  incidents_omitted: number;
  notices: string[];
  problems: Problem[];
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

// All hosts of `gpusonde serve`, each a link to its pages; those with problems first.
export function HostsPage({ hosts, incidents, incidents_omitted, notices, problems, lost, theme, onTheme, onHost, account, children }: Props) {
  const [filter, setFilter] = useState("");
  const [order, setOrder] = useState<HostOrder>("problem");
  const [all, setAll] = useState(false);
  const open = (event: MouseEvent, name: string, opening?: Opening) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    onHost(name, opening);
  };
  const found = orderHosts(hosts, order, filter);
  const shown = all ? found : found.slice(0, MAX_HOSTS);
  const names = narrowLongNames(shown.map(({ name }) => printable(name)), FITS);
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
      <Notices notices={notices} />
      <Problems problems={problems} />
      <div class="all-hosts">
        <section aria-label="Hosts">
          <div class="hosts-line">
            <p>
              <State hosts={hosts} />
            </p>
            {hosts.length >= MANY_HOSTS && (
              <input type="search" placeholder="Filter hosts" aria-label="Filter hosts" value={filter} onInput={(event) => setFilter(event.currentTarget.value)} />
            )}
          </div>
          <table class="hosts">
            <thead>
              <tr>
                {COLUMNS.map((column) => (
                  <HeadCell key={column.order} column={column} order={order} onOrder={setOrder} />
                ))}
              </tr>
            </thead>
            <tbody>
              {shown.map((host, i) => (
                <HostRow key={host.name} host={host} shown={names[i]!} onOpen={open} />
              ))}
            </tbody>
          </table>
          {found.length === 0 && <p class="dim">No host’s name contains “{filter}”</p>}
          <More shown={shown.length} of={found.length} onAll={() => setAll(true)} />
        </section>
        {incidents.length > 0 && <IncidentsOfAll incidents={incidents} omitted={incidents_omitted} onOpen={open} />}
        {children}
      </div>
    </div>
  );
}

// "200 hosts with 1,600 GPUs: 3 silent, 12 with incidents; GPUs held idle for …"
function State({ hosts }: { hosts: HostUse[] }) {
  const count = (is: (host: HostUse) => boolean) => hosts.filter(is).length;
  const sum = (of: (host: HostUse) => number | null) => hosts.reduce((total, host) => total + (of(host) ?? 0), 0);
  const gpus = sum((host) => host.gpus);
  const [silent, slow] = [count((host) => host.silent), count((host) => (host.incidents ?? 0) > 0)];
  const [held, idle] = [sum((host) => host.held_ns), sum((host) => host.idle_ns)];
  return (
    <>
      {formatCount(gpus)} {gpus === 1 ? "GPU" : "GPUs"}
      {silent > 0 && (
        <>
          , <span class="alarm">{formatCount(silent)} silent</span>
        </>
      )}
      {slow > 0 && `, ${formatCount(slow)} with incidents in 24 hours`}
      {count(hasProblem) === 0 && ", no host with problems"}
      {held > 0 && `; held for ${formatDuration(held)} of GPU time in 24 hours, ${formatShare(idle, held)} idle`}
    </>
  );
}

function HeadCell({ column: { order: of, title, hint, className }, order, onOrder }: { column: Column; order: HostOrder; onOrder: (order: HostOrder) => void }) {
  const chosen = order === of;
  return (
    <th scope="col" class={className} title={hint} aria-sort={chosen ? "other" : undefined}>
      <button type="button" class="sort" aria-pressed={chosen} title={chosen ? "Sort by problems" : `Sort by ${title.toLowerCase()}`} onClick={() => onOrder(chosen ? "problem" : of)}>
        {title}
      </button>
    </th>
  );
}

// `shown` is the host's name as the column has room for it.
function HostRow({ host, shown, onOpen }: { host: HostUse; shown: string; onOpen: (event: MouseEvent, host: string) => void }) {
  return (
    <tr title={host.error || undefined}>
      <th scope="row">
        <a href={hostLink(host.name)} title={printable(host.name)} onClick={(event) => onOpen(event, host.name)}>
          {shown}
        </a>
      </th>
      <td class="figure" title={host.last_seen_us === 0 ? undefined : formatUtc(host.last_seen_us)}>
        <LastData host={host} />
      </td>
      <td class="figure">{host.gpus ?? "–"}</td>
      <td class="figure">{host.busy === null ? "–" : formatShare(host.busy, 1)}</td>
      <td class="figure" title={host.held_ns ? `of ${formatDuration(host.held_ns)} held` : undefined}>
        {host.idle_ns === null || !host.held_ns ? "–" : `${formatDuration(host.idle_ns)} (${formatShare(host.idle_ns, host.held_ns)})`}
      </td>
      <td class="figure">{host.incidents === null ? "–" : host.incidents > 0 ? <span class="alarm">{formatCount(host.incidents)}</span> : 0}</td>
      <td class="figure stored">{formatCount(Math.round(host.bytes / 1e6))} MB</td>
    </tr>
  );
}

function More({ shown, of, onAll }: { shown: number; of: number; onAll: () => void }) {
  if (shown === of) return null;
  return (
    <button type="button" class="plain more" onClick={onAll}>
      Show all {formatCount(of)}
    </button>
  );
}

// The newest incidents of all hosts, each a link to those of its host.
function IncidentsOfAll({ incidents, omitted, onOpen }: { incidents: HostIncident[]; omitted: number; onOpen: (event: MouseEvent, host: string, opening: Opening) => void }) {
  const [all, setAll] = useState(false);
  const shown = all ? incidents : incidents.slice(0, MAX_INCIDENTS);
  return (
    <section aria-label="Incidents of all hosts">
      <table class="hosts host-incidents">
        <caption>Incidents of the last 24 hours</caption>
        <thead>
          <tr>
            <th scope="col">Began</th>
            <th scope="col">Host</th>
            <th scope="col" class="program">
              Program
            </th>
            <th scope="col" class="figure">
              Slower
            </th>
            <th scope="col">What happened</th>
          </tr>
        </thead>
        <tbody>
          {shown.map((incident) => (
            <tr key={`${incident.host} ${incident.id}`}>
              <td title={incident.to_us === null ? formatUtc(incident.from_us) : formatRangeUtc(incident.from_us, incident.to_us)}>{formatTime(incident.from_us)}</td>
              <th scope="row">
                <a href={hostLink(incident.host, INCIDENTS)} onClick={(event) => onOpen(event, incident.host, INCIDENTS)}>
                  {printable(incident.host)}
                </a>
              </th>
              <td class="program">
                {printable(incident.name)} ({incident.pid})
              </td>
              <td class="figure">{incident.slowdown.toFixed(1)}×</td>
              <td>{unbroken(withLocalClock(incident.sentence, incident.from_us))}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <More shown={shown.length} of={incidents.length} onAll={() => setAll(true)} />
      {omitted > 0 && <p class="dim">{formatCount(omitted)} more are only on the pages of their hosts</p>}
    </section>
  );
}

function LastData({ host: { last_seen_us: seen, silent } }: { host: HostUse }) {
  if (seen === 0) return <span class="alarm">nothing yet</span>;
  // No age: the clocks of the browser and the server may differ.
  return silent ? <span class="alarm">silent since {formatTime(seen)}</span> : <>{formatTime(seen)}</>;
}
