// SPDX-License-Identifier: Apache-2.0
import type { ComponentChildren, Ref } from "preact";
import type { Overview } from "../api/types";
import type { HostData } from "../state/use-host-data";
import type { Resource } from "../state/use-resource";
import { activeFilters } from "./active-filters";
import { ComparePage, CompareSides, NothingToCompare } from "./compare";
import { IncidentsPage } from "./incidents";
import { ProfilePage } from "./profile";
import { SourcePage } from "./source";
import { Failed, Loading, NothingRecorded, NothingSelected } from "./states";
import { TimelinePage } from "./timeline";
import { UsagePage } from "./usage";

interface Props {
  data: HostData;
  overview: Overview;
  isDark: boolean;
  search: Ref<HTMLInputElement>;
}

// What is below the strips.
export function PageBody(props: Props) {
  const { data, overview, isDark } = props;
  const { available, view, nav } = data;
  if (!available) return <NothingRecorded overview={overview} />;
  switch (view.page) {
    case "timeline":
      return (
        <TimelinePage
          overview={overview}
          available={available}
          incidents={data.incidents.data?.incidents ?? []}
          view={view}
          nav={nav}
          ofHost={data.ofHost}
          retries={data.retries}
          onRetry={data.retry}
          said={data.problems.map(({ message }) => message)}
          isDark={isDark}
        />
      );
    case "incidents":
      return (
        <Fetched resource={data.incidents} what="incidents" onRetry={data.retry}>
          {(found) => <IncidentsPage found={found} overview={overview} lost={data.overview.error !== null} nav={nav} />}
        </Fetched>
      );
    case "usage":
      return (
        <Fetched resource={data.usage} what="GPU time" onRetry={data.retry}>
          {(usage) => <UsagePage usage={usage} csv={data.usageCsv} view={view} nav={nav} />}
        </Fetched>
      );
    case "compare":
      return (
        <>
          <CompareSides
            view={view}
            nav={nav}
            processes={data.processes.data?.processes ?? []}
            available={available}
            window={data.compareWindow ?? available}
          />
          <Compared {...props} />
        </>
      );
    case "profile":
      return view.source ? <Source {...props} file={view.source} /> : <Profile {...props} />;
  }
}

interface FetchedProps<T> {
  resource: Resource<T>;
  what: string;
  onRetry: () => void;
  children: (data: T) => ComponentChildren;
}

// Data that has been fetched once stays, whatever the page asks for now.
function Fetched<T>({ resource: { data, error }, what, onRetry, children }: FetchedProps<T>) {
  if (data) return <>{children(data)}</>;
  return error ? <Failed error={error} onRetry={onRetry} /> : <Loading what={what} />;
}

function Compared({ data: { comparison, view, nav, retry }, isDark, search }: Props) {
  const { data, error, question, asked } = comparison;
  if (!asked) return <NothingToCompare view={view} />;
  const isAnswered = question === asked.question;
  if (error && !isAnswered) return <Failed error={error} onRetry={retry} />;
  if (!data || !isAnswered) return <Loading what="both sides" />;
  return <ComparePage comparison={data} view={view} nav={nav} isDark={isDark} search={search} />;
}

function Source({ data: { source, view, nav, retry }, overview, file }: Props & { file: string }) {
  const { data, error, question, asked } = source;
  if (error && question !== asked?.question) return <Failed error={error} onRetry={retry} />;
  if (data?.file !== file) return <Loading what={file} />;
  return <SourcePage source={data} overview={overview} view={view} nav={nav} />;
}

const READING = { cpu: "samples", gpu: "GPU work", off_cpu: "waits" };

function Profile({ data: all, overview, isDark, search }: Props) {
  const { view, nav } = all;
  const { data, error, question, asked } = all.profile;
  // If only an update failed, the previous data for the same question stays, under a line that says so.
  if (error && question !== asked?.question) return <Failed error={error} onRetry={all.retry} />;
  // An empty answer to another question says nothing about this one.
  const isEmpty = data?.tree.total[0] === 0;
  if (!data || (isEmpty && question !== asked?.question)) return <Loading what={READING[view.type]} />;
  if (isEmpty) {
    const onGpu = () => nav.step({ type: "gpu" });
    return <NothingSelected view={view} overview={overview} parts={activeFilters(all)} onGpu={onGpu} />;
  }
  return <ProfilePage profile={data} overview={overview} view={view} nav={nav} isDark={isDark} search={search} />;
}
