// SPDX-License-Identifier: Apache-2.0
import { useEffect, useRef } from "preact/hooks";
import { apiUrl } from "../api/client";
import type {
  CompareJson, Devices, FlamegraphJson, Hosts, Incidents, Overview, Processes, Selection, SourceJson, Strips, Summary,
  Usage,
} from "../api/types";
import { parseComparison, type Comparison } from "../flamegraph/difference";
import { parseProfile, type Profile } from "../flamegraph/model";
import { parseSource, type SourceFile } from "../source/lines";
import { useAge } from "./use-age";
import { POLL_MS, useCount, usePolling } from "./use-polling";
import { useResource, type Asked, type Resource } from "./use-resource";
import { useTimes, type Span } from "./use-times";
import { useView } from "./use-view";
import {
  baseSelection, isSameSide, lastOf, processSelection, stackSelection, type ProfileType, type Range,
} from "./view";

// How often data is fetched again while a page is live. All other data is fetched when there is new data, that is when
// the overview's ETag changes.
const REFRESH_MS = {
  // The choices in the header, which seldom change.
  choices: 30_000,
  // The list of hosts while it is what is shown: agents send as often.
  hosts: 10_000,
  // The usage of all hosts, which the server keeps summed up.
  usageOfAll: 60_000,
  // The summary and the usage: from a short window to one of a day or more.
  expensive: { least: 30_000, most: 480_000 },
};
const HOSTS = { url: apiUrl("hosts"), question: "hosts" };
const STRIP_BUCKETS = 600;
const INCIDENT_BUCKETS = 300;

type Extra = Record<string, string | number>;

// What to fetch, and again when the revision changes.
type Request = Asked & { revision: string };

export type HostData = ReturnType<typeof useHostData>;

// What the address selects of a host, and the data for it. A page fetches only what it shows.
export function useHostData(host: string | null) {
  const [polls, poll] = useCount();
  const [retries, retry] = useCount();
  const every = (ms: number) => `${Math.floor((polls * POLL_MS) / ms)}`;

  const ofHost: Record<string, string> = host === null ? {} : { host };
  const asksOverview = { url: apiUrl("overview", {}, ofHost), question: "overview" };
  const overview = useResource<Overview, Overview>(asksOverview, polls + retries, same);
  const seen = overview.data;
  const live = seen?.live ?? false;
  usePolling(poll, live, overview.error !== null);
  useRecovery(overview.error !== null, retry);
  const ageS = useAge(overview.etag);
  // Only `serve` has hosts. Their list is fetched as seldom as other choices, but often enough to be read by itself.
  const choosing = seen?.mode === "serve" && host === null && seen.from_us === null;
  const hostsRevision = `${every(choosing ? REFRESH_MS.hosts : REFRESH_MS.choices)} ${retries}`;
  const hosts = useRequest<Hosts>(seen?.mode === "serve" ? { ...HOSTS, revision: hostsRevision } : null);

  const opensOn = useOpening(seen);
  const [view, nav] = useView(opensOn);
  const available = availableOf(seen);
  const last = lastOf(view, live);
  const stacks = stackSelection(view);
  const shown = { brush: view.brush, last, available };
  const now = useTimes(shown, `${overview.etag}`, retries);
  const slow = useTimes(shown, every(REFRESH_MS.choices), retries);
  const rare = useTimes(shown, every(expensiveMs(now.window)), retries);
  // Reads the GPU work of both sides: only when a side changes, not as data arrives.
  const compared = view.page === "compare" && view.base && !isSameSide(view) ? view.base : null;
  const side = JSON.stringify([compared, view.brush, stacks, view.type, view.wait, last, retries]);
  const once = useTimes(shown, side, retries);

  const ask = (endpoint: string, of: Span, selection: Selection = {}, extra: Extra = {}): Request | null =>
    available && {
      url: apiUrl(endpoint, { ...of.time, ...selection }, { ...ofHost, ...extra }),
      question: `${apiUrl(endpoint, selection, extra)} of ${of.name}`,
      revision: of.revision,
    };

  // Also when the first GPU appears.
  const choices = { ...slow.selected, revision: `${slow.selected.revision} ${seen?.kernels ? 1 : 0}` };
  const onProfile = view.page === "profile";
  const metrics = view.metrics && { metrics: 1 };
  const strips = useRequest<Strips>(ask("strips", now.all, stacks, { buckets: STRIP_BUCKETS, ...metrics }));
  // A trace has no CPU samples, only GPU work, which is read row by row.
  const processes = useRequest<Processes>(ask("processes", choices, {}, seen?.samples === 0 ? { gpus: 1 } : {}));
  const devices = useRequest<Devices>(ask("devices", choices));
  // All programs in the whole window: incidents are chosen from this list, and a brush doesn't filter it. Fetched on
  // every page, because the navigation shows their number.
  const whole = onProfile ? slow.all : now.all;
  const incidents = useRequest<Incidents>(ask("incidents", whole, {}, { buckets: INCIDENT_BUCKETS }));

  const type = { type: view.type, ...(view.type === "off_cpu" && view.wait && { wait: view.wait }) };
  const threads = view.helpers && { helper_threads: 1 };
  const asksProfile = onProfile && !view.source;
  const profileAsked = asksProfile ? ask("flamegraph", now.selected, stacks, { ...type, roots: 1, ...threads }) : null;
  const profile = useParsed<FlamegraphJson, Profile>(profileAsked, parseProfile);
  const whose = { ...processSelection(view), ...(view.device && { device: view.device }) };
  const summary = useRequest<Summary>(onProfile && seen?.kernels ? ask("summary", rare.selected, whose) : null);
  const sourceAsked = onProfile && view.source ? ask("source", now.selected, stacks, { file: view.source }) : null;
  const source = useParsed<SourceJson, SourceFile>(sourceAsked, parseSource);

  const sides = compared && once.window && baseSelection(compared, once.window);
  const bySide = { ...once.selected, revision: `${retries}` };
  const comparisonAsked = sides && ask("compare", bySide, stacks, { ...type, ...sides });
  const comparison = useParsed<CompareJson, Comparison>(comparisonAsked, parseComparison);

  // Of all hosts while one is chosen from them: of the last 24 hours, the server's default.
  const usageAs = (form: "usage" | "usage.csv", extra: Extra = {}): Request | null => {
    const sums = { by: view.by, ...extra };
    if (!choosing) return ask(form, rare.selected, {}, sums);
    const revision = `${every(REFRESH_MS.usageOfAll)} ${retries}`;
    return { url: apiUrl(form, {}, sums), question: `usage of all hosts by ${view.by}`, revision };
  };
  const usage = useRequest<Usage>(choosing || view.page === "usage" ? usageAs("usage") : null);
  const usageCsv = usageAs("usage.csv", view.price === null ? {} : { price: view.price })?.url;

  // Pages whose own data could not be read say so in its place.
  const others = [overview, hosts, strips, processes, devices, summary, ...[incidents, usage].filter(({ data }) => data !== null)];
  const isAnswer = profileAsked !== null && profile.question === profileAsked.question;
  return {
    ofHost, retries, retry, ageS, choosing, opensOn, view, nav, available, last,
    window: now.window,
    compareWindow: once.window,
    overview, hosts, strips, processes, devices, incidents, summary, usage, usageCsv,
    profile: { ...profile, asked: profileAsked },
    source: { ...source, asked: sourceAsked },
    comparison: { ...comparison, asked: comparisonAsked },
    problems: problemsOf(isAnswer ? [...others, profile] : others),
    // What is shown, a graph or a failure, is not what was asked for.
    busy: profileAsked !== null && profile.loading && !isAnswer && (profile.question !== null || profile.error !== null),
  };
}

// Asks again for what could not be read meanwhile once the server responds again.
function useRecovery(lost: boolean, retry: () => void): void {
  const wasLost = useRef(lost);
  useEffect(() => {
    if (wasLost.current && !lost) retry();
    wasLost.current = lost;
  }, [lost]);
}

// A failed request; `older` if what was read before is still shown.
export interface Problem {
  message: string;
  older: boolean;
}

// One for each cause.
function problemsOf(resources: Resource<unknown>[]): Problem[] {
  const problems = new Map<string, boolean>();
  for (const { error, data } of resources) {
    if (error) problems.set(error.message, (problems.get(error.message) ?? false) || data !== null);
  }
  return [...problems].map(([message, older]) => ({ message, older }));
}

const same = <T,>(json: T): T => json;

function useRequest<T>(request: Request | null): Resource<T> {
  return useParsed<T, T>(request, same);
}

function useParsed<Json, T>(request: Request | null, parse: (json: Json) => T): Resource<T> {
  return useResource(request, request?.revision ?? "", parse);
}

// The time of all data; null without any.
function availableOf(seen: Overview | null): Range | null {
  return seen && seen.from_us !== null && seen.to_us !== null ? { from: seen.from_us, to: seen.to_us } : null;
}

// The summary reads whole profiles, by far the most expensive request of the page, and changes slowly over a long
// window, as the usage does: they are fetched three to six times while the window moves by its length. Powers of two,
// so that the interval seldom changes while data arrives.
function expensiveMs(window: Range | null): number {
  const { least, most } = REFRESH_MS.expensive;
  let interval = least;
  while (window && interval < most && 6 * interval <= (window.to - window.from) / 1000) interval *= 2;
  return interval;
}

// The initial profile type: GPU time if there is GPU work. Decided once when data arrives, and kept, so that later
// GPU work doesn't switch the view while someone reads it.
function useOpening(seen: Overview | null): ProfileType {
  const opening = useRef<ProfileType | null>(null);
  if (opening.current === null && seen && seen.from_us !== null) opening.current = seen.kernels > 0 ? "gpu" : "cpu";
  return opening.current ?? "cpu";
}
