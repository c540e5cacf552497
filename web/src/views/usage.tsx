// SPDX-License-Identifier: Apache-2.0
import { USAGE_BY, type Usage, type UsageBy, type UsageGroup, type UsageSums } from "../api/types";
import { formatCount, formatDuration, formatRange, formatRangeUtc, formatShare, formatTime, threeDigits } from "../format";
import { narrowLongNames } from "../flamegraph/names";
import { printable } from "../printable";
import type { Navigation } from "../state/use-view";
import { price as parsePrice, type View } from "../state/view";
import { Message } from "./states";

// What the field takes; it marks other text as invalid.
const PRICE = "\\s*\\d+([.,]\\d+)?\\s*";
// The characters of a name for which its column always has room (styles/usage.css).
const FITS = 36;
const HOUR_NS = 3600e9;

const TITLES: Record<(typeof USAGE_BY)[number], string> = {
  owner: "owner",
  pod: "pod",
  namespace: "namespace",
  container: "container",
  job: "SLURM job",
  service: "service",
  user: "user",
  application: "application",
  process: "process",
  device: "GPU",
  host: "host",
};

function titleOf(by: UsageBy): string {
  return by in TITLES ? TITLES[by as keyof typeof TITLES] : by.replace(":", " ");
}

function capitalised(title: string): string {
  return title.charAt(0).toUpperCase() + title.slice(1);
}

// All labels are listed, and the chosen one even if no pod has it.
function choicesOf(usage: Usage): UsageBy[] {
  return [...new Set<UsageBy>([...USAGE_BY, ...usage.labels.map((label): UsageBy => `label:${label}`), usage.by])];
}

interface Props {
  usage: Usage;
  csv: string | undefined; // the address of the same as CSV
  view: View;
  nav: Navigation;
}

// Who held the GPUs in the selected time, and used or wasted them.
export function UsagePage({ usage, csv, view, nav }: Props) {
  const { total, from_us, to_us } = usage;
  const range = from_us === null || to_us === null ? null : ([from_us, to_us] as const);
  const shown = narrowLongNames(usage.groups.map(({ name }) => printable(name)), FITS);
  const setPrice = (text: string) => nav.step({ price: parsePrice(text) });
  return (
    <section class="usage" aria-label="GPU time">
      <header>
        <p class="sentence" title={range ? formatRangeUtc(...range) : undefined}>
          {range ? formatRange(...range) : "No data of this time"}: <Headline usage={usage} />
        </p>
        <label>
          by{" "}
          <select class="choice" aria-label="Sum by" value={usage.by} onChange={(event) => nav.step({ by: event.currentTarget.value as UsageBy })}>
            {choicesOf(usage).map((by) => (
              <option key={by} value={by}>
                {titleOf(by)}
              </option>
            ))}
          </select>
        </label>
        <label title="Price per GPU-hour, in any currency; adds the cost of idle time">
          price per hour{" "}
          <input class="choice" type="text" inputMode="decimal" size={6} placeholder="2.50" pattern={PRICE} value={view.price ?? ""} onChange={(event) => setPrice(event.currentTarget.value.trim().replace(",", "."))} />
        </label>
        {csv && usage.groups.length > 0 && (
          <a href={csv} download="usage.csv" title="The same table, for a spreadsheet">
            CSV
          </a>
        )}
      </header>
      {usage.coverage && <Covered coverage={usage.coverage} />}
      {usage.groups.length === 0 ? (
        <Message title={isPartial(usage) ? "No process held a GPU in what is summed up so far" : "No process held a GPU in this time"} kind="empty">
          <p>A process holds a GPU from its first work or memory on it until it ends, a pod while it has one allocated.</p>
        </Message>
      ) : (
        <table>
          <thead>
            <tr>
              <th scope="col" title={usage.by === "owner" ? "The pod; without one the SLURM job, else the container, the service or the user" : undefined}>
                {capitalised(titleOf(usage.by))}
              </th>
              <th scope="col" class="figure">
                GPUs
              </th>
              <th scope="col" class="figure">
                Processes
              </th>
              <th scope="col" class="figure" title="Time of a GPU that several hold is divided equally">
                GPU time
              </th>
              <th scope="col" class="parts">
                <span class="busy">busy</span> <span class="idle">idle</span> <span class="unobserved">not observed</span>
              </th>
              <th scope="col" class="figure">
                Busy
              </th>
              <th scope="col" class="figure">
                Idle
              </th>
              <th scope="col" class="figure" title="Of the time observed; with its 95 % interval if some was not">
                Busy share
              </th>
              <th scope="col" class="figure" title="NVML’s own figure: the share of its sample periods in which a kernel ran, also where gpusonde did not observe">
                By NVML
              </th>
              {view.price !== null && (
                <th scope="col" class="figure">
                  Idle cost
                </th>
              )}
            </tr>
          </thead>
          <tbody>
            {usage.groups.map((group, i) => (
              <Row key={group.name} group={group} shown={shown[i]!} largest={usage.groups[0]!.accountable_ns} usage={usage} price={view.price} />
            ))}
          </tbody>
          {usage.groups.length > 1 && (
            <tfoot>
              <Row group={{ ...total, name: "all" }} shown="all" largest={total.accountable_ns} usage={usage} price={view.price} />
            </tfoot>
          )}
        </table>
      )}
      {usage.omitted > 0 && <p class="dim">… {formatCount(usage.omitted)} more that held less</p>}
    </section>
  );
}

const MAX_GAPS = 5;

// What an answer about several hosts covers.
function Covered({ coverage: { hosts, until_us, gaps, gaps_omitted } }: { coverage: NonNullable<Usage["coverage"]> }) {
  const more = gaps.length - MAX_GAPS + gaps_omitted;
  return (
    <p class="dim">
      All {formatCount(hosts)} hosts, in whole hours
      {until_us !== null && `, summed until ${formatTime(until_us)}`}
      {gaps.length > 0 && (
        <span class="gaps">
          . Not complete: {gaps.slice(0, MAX_GAPS).map(({ host, why }) => `${host} (${why})`).join(", ")}
          {more > 0 && ` and ${formatCount(more)} more`}
        </span>
      )}
    </p>
  );
}

// Some hosts are not summed up, as in the minutes after the server's start.
function isPartial({ coverage }: Usage): boolean {
  return coverage !== undefined && coverage.gaps.length > 0;
}

function Headline({ usage }: { usage: Usage }) {
  const { gpus, simulated, total } = usage;
  const all = total.accountable_ns;
  const devices = `${formatCount(gpus)} ${simulated ? "simulated " : ""}${gpus === 1 ? "GPU" : "GPUs"}`;
  const soFar = isPartial(usage) && " so far";
  if (all === 0) return gpus === 0 ? <>no GPU was seen{soFar}</> : <>{devices}, held by nobody{soFar}</>;
  return (
    <>
      {devices}, held for {formatDuration(all)} of GPU time: {formatShare(total.busy_ns, all)} busy, <b>{formatShare(total.idle_ns, all)} idle</b>
      {total.without_process_ns > 0 && ` (${formatShare(total.without_process_ns, all)} allocated to pods without a process on them)`}
      {isShown(total) && `, ${formatShare(total.unobserved_ns, all)} not observed`}
    </>
  );
}

// Sessions begin a moment after the first work: that little is not worth a column.
function isShown(sums: UsageSums): boolean {
  return sums.unobserved_ns >= sums.accountable_ns / 1000;
}

// `shown` is the name as the column has room for it, `largest` the time that fills the bar.
function Row({ group, shown, largest, usage, price }: { group: UsageGroup; shown: string; largest: number; usage: Usage; price: number | null }) {
  const width = (ns: number) => ({ width: `${(100 * ns) / Math.max(largest, 1)}%` });
  return (
    <tr>
      <th scope="row" title={printable(group.name)}>
        {shown || `(no ${titleOf(usage.by)})`}
        {isRoot(group.name, usage.by) && <span class="dim"> (root)</span>}
      </th>
      <td class="figure">{formatCount(group.devices)}</td>
      <td class="figure">{formatCount(group.processes)}</td>
      <td class="figure" title={`held for ${formatDuration(group.held_ns)}, alone or shared`}>
        {formatDuration(group.accountable_ns)}
      </td>
      <td class="parts" aria-hidden="true">
        <div class="bar" title={`busy ${formatDuration(group.busy_ns)}, idle ${formatDuration(group.idle_ns)}, not observed ${formatDuration(group.unobserved_ns)}`}>
          <i class="busy" style={width(group.busy_ns)} />
          <i class="idle" style={width(group.idle_ns)} />
          <i class="unobserved" style={width(group.unobserved_ns)} />
        </div>
      </td>
      <td class="figure">{formatDuration(group.busy_ns)}</td>
      <td class="figure" title={group.without_process_ns > 0 ? `${formatDuration(group.without_process_ns)} of it allocated without a process` : undefined}>
        {formatDuration(group.idle_ns)}
      </td>
      <td class="figure">{busyShare(group)}</td>
      <td class="figure">{group.sampled_utilization === null ? "–" : formatShare(group.sampled_utilization, 1)}</td>
      {price !== null && <td class="figure">{threeDigits((group.idle_ns / HOUR_NS) * price)}</td>}
    </tr>
  );
}

// Users are known by their ids only, and this one has the same name everywhere.
function isRoot(name: string, by: UsageBy): boolean {
  return (by === "owner" && name === "user 0") || (by === "user" && name === "0");
}

function busyShare(sums: UsageSums): string {
  if (sums.busy_share === null) return "–";
  const { value, low, high } = sums.busy_share;
  const [from, to] = [Math.round(low * 100), Math.round(high * 100)];
  return formatShare(value, 1) + (from < to ? ` (${from}\u00a0to\u00a0${to})` : "");
}
