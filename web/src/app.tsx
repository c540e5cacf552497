// SPDX-License-Identifier: Apache-2.0
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { apiUrl } from "./api/client";
import type { CompareJson, Devices, FlamegraphJson, Hosts, Incidents, Overview, Processes, Selection, Session, SourceJson, Strips, Summary, Usage } from "./api/types";
import { parseProfile, type Profile } from "./flamegraph/model";
import { parseSource, type SourceFile } from "./source/lines";
import { formatCount, formatDuration, formatRange } from "./format";
import { useAge } from "./state/use-age";
import { useHost, type ChooseHost } from "./state/use-host";
import { useKeys } from "./state/keys";
import { useTheme, type Theme } from "./state/theme";
import { useResource, type Asked } from "./state/use-resource";
import { useView } from "./state/use-view";
import { baseSelection, formatView, isSameSide, isSettled, lastOf, processSelection, stackSelection, timeSelection, windowOf, type ProfileType, type Range, type View } from "./state/view";
import { Answer } from "./views/answer";
import { ComparePage, CompareSides, NothingToCompare, parseComparison, type Comparison } from "./views/compare";
import { Header, labelOf } from "./views/header";
import { Help } from "./views/help";
import { HostsPage } from "./views/hosts";
import { IncidentsPage } from "./views/incidents";
import { titleOf } from "./views/process-picker";
import { ProfilePage } from "./views/profile";
import { SignedIn, SignIn } from "./views/sign-in";
import { SourcePage } from "./views/source";
import { Failed, Loading, NothingRecorded, NothingSelected, Notices, Troubles } from "./views/states";
import { MetricStrip } from "./views/strip";
import { TimeType, WAIT_LABELS } from "./views/time-type";
import { TimelinePage } from "./views/timeline";
import { UsagePage } from "./views/usage";

const POLL_MS = 2000;
// Data that seldom changes (the choices in the header) is fetched every 30 s.
const POLLS_PER_SLOW = 15;
// The list of hosts, while it is what is shown, every 10 s: agents send as often.
const POLLS_PER_HOSTS = 5;
// The usage of all hosts, which the server keeps summed up.
const POLLS_PER_ALL_USAGE = 30;
// How often the most expensive data is fetched for a window of a day or more.
const DAY_SUMMARY_MS = 480_000;
const SESSION = { url: apiUrl("session"), question: "session" };
const HOSTS = { url: apiUrl("hosts"), question: "hosts" };
const STRIP_BUCKETS = 600;
const INCIDENT_BUCKETS = 300;
// With more strips than this, each is lower.
const MOST_HIGH_STRIPS = 3;

const READING = { cpu: "samples", gpu: "GPU work", off_cpu: "waits" };

const same = <T,>(json: T): T => json;

// Another host has other processes, devices and times: its page starts anew. So it does for whoever signs in.
export function App() {
  const [host, choose] = useHost();
  const [changes, setChanges] = useState(0);
  const [ended, setEnded] = useState(false);
  const session = useResource<Session, Session>(SESSION, changes, same);
  const theme = useTheme();
  const again = () => {
    setEnded(false);
    setChanges((count) => count + 1);
  };
  if (!session.data) {
    return session.error ? <Failed error={session.error} onRetry={again} /> : <Loading what="the session" />;
  }
  if (session.data.needs_sign_in) return <SignIn ended={ended} onDone={again} />;
  const account = session.data.name !== "" && <SignedIn name={session.data.name} onSignedOut={again} />;
  const onEnded = () => {
    again();
    setEnded(true);
  };
  return <HostPages key={host ?? ""} host={host} onHost={choose} theme={theme} account={account} onEnded={onEnded} />;
}

interface HostPagesProps {
  host: string | null;
  onHost: ChooseHost;
  theme: Theme;
  // Who is signed in, where the server asks for it.
  account: ComponentChildren;
  // The session has ended: by its age, or with its token.
  onEnded: () => void;
}

// Data flows one way: the address defines the selection, resources fetch it, views show it.
function HostPages({ host, onHost, theme, account, onEnded }: HostPagesProps) {
  const [helping, setHelping] = useState(false);
  const [polls, setPolls] = useState(0);
  const [retries, setRetries] = useState(0);
  const search = useRef<HTMLInputElement>(null);

  const ofHost: Record<string, string> = host === null ? {} : { host };
  const overview = useResource<Overview, Overview>({ url: apiUrl("overview", {}, ofHost), question: "overview" }, polls + retries, same);
  const seen = overview.data;
  const ageS = useAge(overview.etag);
  useEffect(() => {
    if (overview.error?.status === 401) onEnded();
  }, [overview.error]);
  // Only `serve` has hosts. Their list is fetched as seldom as other choices, but often enough to be read by itself.
  const choosing = seen?.mode === "serve" && host === null && seen.from_us === null;
  const hostTick = choosing ? Math.floor(polls / POLLS_PER_HOSTS) : Math.floor(polls / POLLS_PER_SLOW);
  const hosts = useResource<Hosts, Hosts>(seen?.mode === "serve" ? HOSTS : null, `${hostTick} ${retries}`, same);
  const opensOn = useOpening(seen);
  const [view, nav] = useView(opensOn);
  useKeys({ nav, search, onHelp: () => setHelping(true) });
  const available = seen && seen.from_us !== null && seen.to_us !== null ? { from: seen.from_us, to: seen.to_us } : null;
  const last = lastOf(view, seen?.live ?? false);
  const window = windowOf(last, available);
  const stacks = stackSelection(view);
  // Expensive data is fetched less often, and not for each step of a moving window.
  const tick = Math.floor(polls / POLLS_PER_SLOW);
  const slowWindow = windowOf(last, useHeld(available, `${tick} ${available === null}`));
  const summaryTick = Math.floor((polls * POLL_MS) / summaryIntervalMs(window));
  const summaryWindow = windowOf(last, useHeld(available, `${summaryTick} ${available === null}`));
  const brushed = view.brush && { time: timeSelection(view.brush), name: `${view.brush.from} to ${view.brush.to}` };
  const windowed = spanOf(last, window);
  const span = brushed ?? windowed;
  const slowSpan = brushed ?? spanOf(last, slowWindow);

  // A page fetches only what it shows, and fetches again only for new data (the overview's ETag changes) or a retry.
  const revision = `${overview.etag} ${retries}`;
  const slowRevision = `${tick} ${retries}`;
  const settled = isSettled(view.brush, available) && `settled ${retries}`;
  const spanRevision = settled || revision;
  const slowSpanRevision = settled || slowRevision;
  const onProfile = view.page === "profile";
  const ask = (endpoint: string, { time, name }: Span, selection: Selection = {}, extra: Record<string, string | number> = {}): Asked | null =>
    available && { url: apiUrl(endpoint, { ...time, ...selection }, { ...ofHost, ...extra }), question: `${apiUrl(endpoint, selection, extra)} of ${name}` };
  const strips = useResource<Strips, Strips>(ask("strips", windowed, stacks, { buckets: STRIP_BUCKETS, ...(view.metrics && { metrics: 1 }) }), revision, same);
  // Also when the first GPU appears.
  const choicesRevision = `${slowSpanRevision} ${seen?.kernels ? 1 : 0}`;
  // A trace has no CPU samples, only GPU work, which is read row by row.
  const processes = useResource<Processes, Processes>(ask("processes", slowSpan, {}, seen?.samples === 0 ? { gpus: 1 } : {}), choicesRevision, same);
  const devices = useResource<Devices, Devices>(ask("devices", slowSpan), choicesRevision, same);
  // All programs in the whole window: incidents are chosen from this list, and a brush doesn't filter it. Fetched on
  // every page, because the navigation shows their number.
  const incidentSpan = onProfile ? spanOf(last, slowWindow) : windowed;
  const incidents = useResource<Incidents, Incidents>(ask("incidents", incidentSpan, {}, { buckets: INCIDENT_BUCKETS }), onProfile ? slowRevision : revision, same);

  const wait = view.type === "off_cpu" && view.wait;
  const profileAsked = onProfile && !view.source ? ask("flamegraph", span, stacks, { type: view.type, roots: 1, ...(wait && { wait }), ...(view.helpers && { helper_threads: 1 }) }) : null;
  const profile = useResource<FlamegraphJson, Profile>(profileAsked, spanRevision, parseProfile);
  const whose = { ...processSelection(view), ...(view.device && { device: view.device }) };
  const summary = useResource<Summary, Summary>(onProfile && seen?.kernels ? ask("summary", brushed ?? spanOf(last, summaryWindow), whose) : null, settled || `${summaryTick} ${retries}`, same);
  const sourceAsked = onProfile && view.source ? ask("source", span, stacks, { file: view.source }) : null;
  const source = useResource<SourceJson, SourceFile>(sourceAsked, spanRevision, parseSource);

  // Reads the GPU work of both sides: only when a side changes, not as data arrives.
  const compared = view.page === "compare" && view.base && !isSameSide(view) ? view.base : null;
  const compareWindow = windowOf(last, useHeld(available, JSON.stringify([compared, view.brush, stacks, view.type, view.wait, last, available === null, retries])));
  const compareSpan = brushed ?? spanOf(last, compareWindow);
  const compareAsked = compared && compareWindow && ask("compare", compareSpan, stacks, { type: view.type, ...(wait && { wait }), ...baseSelection(compared, compareWindow) });
  const comparison = useResource<CompareJson, Comparison>(compareAsked, `${retries}`, parseComparison);

  // Of all hosts while one is chosen from them: of the last 24 hours, the server's default.
  const usageAs = (form: "usage" | "usage.csv", extra: Record<string, number> = {}): Asked | null => {
    const sums = { by: view.by, ...extra };
    return choosing ? { url: apiUrl(form, {}, sums), question: `usage of all hosts by ${view.by}` } : ask(form, brushed ?? spanOf(last, summaryWindow), {}, sums);
  };
  const usageAsked = choosing || view.page === "usage" ? usageAs("usage") : null;
  const usageRevision = choosing ? `${Math.floor(polls / POLLS_PER_ALL_USAGE)} ${retries}` : settled || `${summaryTick} ${retries}`;
  const usage = useResource<Usage, Usage>(usageAsked, usageRevision, same);
  const usagePage = usage.data && <UsagePage usage={usage.data} csv={usageAs("usage.csv", view.price === null ? {} : { price: view.price })?.url} view={view} nav={nav} />;

  useEffect(() => {
    // A recording never changes, but a lost server may come back.
    if (!seen?.live && !overview.error) return;
    const poll = () => document.hidden || setPolls((count) => count + 1);
    const timer = setInterval(poll, POLL_MS);
    document.addEventListener("visibilitychange", poll);
    return () => {
      clearInterval(timer);
      document.removeEventListener("visibilitychange", poll);
    };
  }, [seen?.live, overview.error !== null]);

  const retry = () => setRetries((count) => count + 1);
  if (!seen) {
    return overview.error ? <Failed error={overview.error} onRetry={retry} /> : <Loading what="the overview" />;
  }

  if (choosing && (hosts.data?.hosts.length ?? 0) > 0) {
    return (
      <HostsPage account={account} hosts={hosts.data!.hosts} incidents={hosts.data!.incidents} lost={overview.error !== null} theme={theme.choice} onTheme={theme.choose} onHost={onHost}>
        {usagePage ?? (usage.error && <Failed error={usage.error} onRetry={retry} />)}
      </HostsPage>
    );
  }

  const device = devices.data?.devices.find((d) => d.device === view.device);
  const deviceName = device ? labelOf(device) : "device";
  const cleared = [
    view.brush && { label: formatRange(view.brush.from, view.brush.to), clear: () => nav.step({ brush: null }) },
    last !== null && { label: `last ${formatDuration(last * 1e9)}`, clear: () => nav.step({ last: seen.live ? "all" : null }) },
    view.processes.length > 0 && { label: `process ${titleOf(view.processes, processes.data?.processes ?? [])}`, clear: () => nav.step({ processes: [], tid: null }) },
    view.tid !== null && { label: `thread ${view.tid}`, clear: () => nav.step({ tid: null }) },
    view.device && { label: deviceName, clear: () => nav.step({ device: null, stream: null }) },
    view.stream !== null && { label: `stream ${view.stream}`, clear: () => nav.step({ stream: null }) },
    wait && { label: `waits for ${WAIT_LABELS[wait]}`, clear: () => nav.step({ wait: null }) },
    view.idle && { label: "while GPU idle", clear: () => nav.step({ idle: false }) },
    view.filter && { label: `filter “${view.filter}”`, clear: () => nav.step({ filter: "" }) },
  ].filter((part) => typeof part === "object" && part !== null);

  const body = () => {
    if (!available) return <NothingRecorded overview={seen} />;
    if (view.page === "timeline") {
      return <TimelinePage overview={seen} available={available} incidents={incidents.data?.incidents ?? []} view={view} nav={nav} ofHost={ofHost} retries={retries} onRetry={retry} isDark={theme.isDark} />;
    }
    if (view.page === "incidents") {
      if (incidents.data) return <IncidentsPage found={incidents.data} overview={seen} nav={nav} />;
      return incidents.error ? <Failed error={incidents.error} onRetry={retry} /> : <Loading what="incidents" />;
    }
    if (view.page === "usage") {
      if (usagePage) return usagePage;
      return usage.error ? <Failed error={usage.error} onRetry={retry} /> : <Loading what="GPU time" />;
    }
    if (view.page === "compare") {
      const sides = <CompareSides view={view} nav={nav} processes={processes.data?.processes ?? []} available={available} window={compareWindow ?? available} />;
      const result = () => {
        if (!compareAsked) return <NothingToCompare view={view} />;
        if (comparison.error && comparison.question !== compareAsked.question) return <Failed error={comparison.error} onRetry={retry} />;
        if (!comparison.data || comparison.question !== compareAsked.question) return <Loading what="both sides" />;
        return <ComparePage comparison={comparison.data} view={view} nav={nav} isDark={theme.isDark} search={search} />;
      };
      return (
        <>
          {sides}
          {result()}
        </>
      );
    }
    if (view.source) {
      if (source.error && source.question !== sourceAsked?.question) return <Failed error={source.error} onRetry={retry} />;
      if (source.data?.file !== view.source) return <Loading what={view.source} />;
      return <SourcePage source={source.data} overview={seen} view={view} nav={nav} />;
    }
    // If only an update failed, the previous data for the same question stays, under a line that says so.
    if (profile.error && profile.question !== profileAsked?.question) return <Failed error={profile.error} onRetry={retry} />;
    if (!profile.data) return <Loading what={READING[view.type]} />;
    if (profile.data.tree.total[0] === 0) {
      return <NothingSelected view={view} overview={seen} parts={cleared} onGpu={() => nav.step({ type: "gpu" })} />;
    }
    return <ProfilePage profile={profile.data} overview={seen} view={view} nav={nav} isDark={theme.isDark} search={search} />;
  };

  const shown = strips.data?.strips ?? [];
  const xids = strips.data?.marks.filter(({ kind }) => kind === "xid").length ?? 0;
  const marksOf = (device?: string) => (device ? (strips.data?.marks.filter((mark) => mark.device === device) ?? []) : []);
  const open = incidents.data?.incidents.length ?? 0;
  const failures = [overview.error, hosts.error, incidents.data ? incidents.error : null, usage.data ? usage.error : null, strips.error, processes.error, devices.error, summary.error, profile.question === profileAsked?.question ? profile.error : null];
  const troubles = failures.filter((error) => error !== null);
  const busy = profile.loading && profile.question !== null && !seen.live;
  return (
    <div class={`app ${busy ? "busy" : ""}`}>
      <Header
        overview={seen}
        hosts={hosts.data?.hosts ?? []}
        host={host}
        onHost={onHost}
        lost={overview.error !== null}
        ageS={ageS}
        processes={processes.data?.processes ?? []}
        devices={devices.data?.devices ?? []}
        available={available}
        window={window}
        view={view}
        nav={nav}
        theme={theme.choice}
        onTheme={theme.choose}
        onHelp={() => setHelping(true)}
        account={account}
      />
      <Notices notices={seen.notices} />
      <Troubles errors={troubles} />
      {onProfile && summary.data?.gpu && <Answer gpu={summary.data.gpu} view={view} opensOn={opensOn} nav={nav} />}
      {onProfile && summary.data === null && summary.loading && <p class="answer reading">Reading GPU time…</p>}
      <div class="strips">
        {window &&
          shown.map((strip, i) => (
            <MetricStrip
              key={strip.id}
              strips={strips.data!}
              strip={strip}
              window={window}
              brush={view.brush}
              base={view.page === "compare" ? (view.base?.time ?? null) : null}
              onBrush={(brush) => nav.step({ brush })}
              isDark={theme.isDark}
              marks={shown.findIndex(({ device }) => device === strip.device) === i ? marksOf(strip.device) : []}
              low={shown.length > MOST_HIGH_STRIPS || strip.metric !== undefined}
              axis={i === shown.length - 1}
            />
          ))}
      </div>
      {view.metrics && strips.data && !shown.some(({ metric }) => metric) && (
        <p class="hint">No clocks, power or memory of GPUs in this time: no NVIDIA driver responded. Run <code>gpusonde doctor</code> to see what is missing.</p>
      )}
      {window && !strips.data && !strips.error && <div class="strip" aria-hidden="true" />}
      <div class="pages">
        <nav aria-label="Pages">
          <Page page="profile" view={view} opensOn={opensOn} onStep={nav.step}>
            Profile
          </Page>
          {view.source && view.page === "profile" && (
            <a href={location.search} aria-current="page" title={view.source} onClick={(event) => event.preventDefault()}>
              {view.source.slice(view.source.lastIndexOf("/") + 1)}
            </a>
          )}
          <Page page="timeline" view={view} opensOn={opensOn} onStep={nav.step}>
            Timeline
          </Page>
          <Page page="compare" view={view} opensOn={opensOn} onStep={nav.step}>
            Compare
          </Page>
          <Page page="incidents" view={view} opensOn={opensOn} onStep={nav.step}>
            Incidents{open > 0 && <span class="alarm"> {formatCount(open)}</span>}
          </Page>
          <Page page="usage" view={view} opensOn={opensOn} onStep={nav.step}>
            Usage
          </Page>
        </nav>
        {(devices.data?.devices.length ?? 0) > 0 && (
          <button
            type="button"
            class="plain toggle"
            aria-pressed={view.metrics}
            title="Strips of the GPUs’ clocks, power, temperature, memory and PCIe (M)"
            onClick={() => nav.step({ metrics: !view.metrics })}
          >
            GPU state{xids > 0 && <span class="alarm"> {xids === 1 ? "1 XID" : `${formatCount(xids)} XIDs`}</span>}
          </button>
        )}
        {available && (view.page === "profile" || view.page === "compare") && <TimeType view={view} nav={nav} hasGpus={(devices.data?.devices.length ?? 0) > 0} />}
      </div>
      {busy && <div class="progress" role="progressbar" aria-label="Reading samples" />}
      {body()}
      {helping && <Help onClose={() => setHelping(false)} />}
    </div>
  );
}

// A stretch of time in a question; while a live window moves, its name stays the same.
interface Span {
  time: Selection;
  name: string;
}

// The whole time is left out of the query, so that the address stays the same while data arrives.
function spanOf(last: number | null, window: Range | null): Span {
  return { time: last === null ? {} : timeSelection(window), name: `last ${last}` };
}

// The summary reads whole profiles, by far the most expensive request of the page, and changes slowly over a long
// window, as the usage does: they are fetched three to six times while the window moves by its length, every 30 s to 8 min. Powers of two,
// so that the interval seldom changes while data arrives.
function summaryIntervalMs(window: Range | null): number {
  let interval = 30_000;
  while (window && interval < DAY_SUMMARY_MS && 6 * interval <= (window.to - window.from) / 1000) interval *= 2;
  return interval;
}

// The value as it was when the key last changed.
function useHeld<T>(value: T, key: string): T {
  const held = useRef({ key, value });
  if (held.current.key !== key) held.current = { key, value };
  return held.current.value;
}

// The initial profile type: GPU time if there is GPU work. Decided once when data arrives, and kept, so that later
// GPU work doesn't switch the view while someone reads it.
function useOpening(seen: Overview | null): ProfileType {
  const opening = useRef<ProfileType | null>(null);
  if (opening.current === null && seen && seen.from_us !== null) opening.current = seen.kernels > 0 ? "gpu" : "cpu";
  return opening.current ?? "cpu";
}

interface PageProps {
  page: View["page"];
  view: View;
  opensOn: ProfileType;
  onStep: (change: Partial<View>) => void;
  children: ComponentChildren;
}

// A link to a page that keeps the selection.
function Page({ page, view, opensOn, onStep, children }: PageProps) {
  const go = (event: MouseEvent) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    onStep({ page, source: null });
  };
  return (
    <a href={formatView({ ...view, page, source: null }, opensOn) || "?"} aria-current={view.page === page && !view.source ? "page" : undefined} onClick={go}>
      {children}
    </a>
  );
}
