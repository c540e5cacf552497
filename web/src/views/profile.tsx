// SPDX-License-Identifier: Apache-2.0
import type { Ref } from "preact";
import type { Overview } from "../api/types";
import { nodeName, pathHash, ROOT, type FunctionTable, type Profile } from "../flamegraph/model";
import { formatCount, formatDuration, formatInterval, formatValue } from "../format";
import { isSourceFile } from "../source/lines";
import type { Navigation } from "../state/use-view";
import { usePicture } from "../state/use-picture";
import type { View } from "../state/view";
import { FlameGraph } from "./flame-graph";
import { Legend } from "./legend";
import { Simulated } from "./simulated";
import { Incomplete } from "./states";
import { WAIT_LABELS } from "./time-type";
import { Toolbar } from "./toolbar";
import { TopTable } from "./top-table";

interface Props {
  profile: Profile;
  overview: Overview;
  view: View;
  nav: Navigation;
  isDark: boolean;
  search: Ref<HTMLInputElement>;
}

function fileOf(functions: FunctionTable, fn: number): string | null {
  const file = functions.file[fn] ?? "";
  return isSourceFile(file) ? file : null;
}

function whatOf(profile: Profile, view: View): string {
  if (profile.type === "gpu") return "of GPU time";
  if (profile.type === "off_cpu") return view.wait ? `of waiting for ${WAIT_LABELS[view.wait]}` : "of waiting";
  return view.idle ? "of CPU time while the GPU was idle" : "of CPU time";
}

const ESTIMATES: Record<string, string> = {
  gpu: "a kernel’s time is counted, who launched it is sampled.",
  off_cpu: "waits of half a second and more are counted, shorter ones are sampled.",
};

const SAMPLED_SECONDS = "so many kernels ran that the moments of idleness were looked up in some seconds only.";

// A profile that has samples: toolbar, legend, graph and table over one tree.
export function ProfilePage({ profile, overview, view, nav, isDark, search }: Props) {
  const { picture, groups, drawn, found, match, zoomLost } = usePicture(profile.tree, view, isDark);
  const { tree, zoom } = picture;
  const total = tree.total[ROOT]!;
  const interval = formatInterval(tree.interval?.[ROOT] ?? 0, tree.unit);
  const isGpu = profile.type === "gpu";

  const zoomTo = (node: number) => {
    // A click on the frame that fills the width zooms out to its caller.
    const target = node === zoom && node !== ROOT ? tree.parent[node]! : node;
    nav.step({ zoom: target === ROOT ? null : pathHash(tree, target) });
  };

  return (
    <main class="profile">
      <Incomplete overview={overview} omitted={profile.omitted} total={total} unit={tree.unit} />
      <div class="summary">
        <span class="figure">
          <strong>{formatValue(total, tree.unit)}</strong> {interval && `${interval} `}
          {whatOf(profile, view)}{" "}
          <span class="dim">
            in {formatCount(profile.samples)} {isGpu ? "kernels and copies" : "samples"}
            {profile.oneSecondIn > 1 && ` of one second in ${formatCount(profile.oneSecondIn)}`}
          </span>
          <Helpers hidden={profile.hidden} view={view} nav={nav} />
        </span>
        {isGpu && overview.simulated && <Simulated />}
        <Toolbar
          view={view}
          nav={nav}
          match={match}
          shown={tree.total[zoom]!}
          file={fileOf(tree.functions, view.pick === null ? tree.function[zoom]! : tree.functions.name.indexOf(view.pick))}
          zoomedName={zoom === ROOT ? null : nodeName(tree, zoom)}
          search={search}
        />
      </div>
      {zoomLost && (
        <p class="lost" role="status">
          This selection does not have the frame that the address zooms to; all frames are shown.{" "}
          <button type="button" class="quiet" onClick={() => nav.adjust({ zoom: null })}>
            Forget it
          </button>
        </p>
      )}
      <Legend groups={groups} drawn={drawn} total={total} theme={picture.theme} view={view} nav={nav} />
      <div class="panes">
        <FlameGraph picture={picture} estimate={profile.oneSecondIn > 1 ? SAMPLED_SECONDS : (ESTIMATES[profile.type] ?? "")} onZoom={zoomTo} />
        <TopTable tree={tree} zoom={zoom} view={view} nav={nav} matches={found} />
      </div>
    </main>
  );
}

// Profilers' threads inside programs: hidden by default.
function Helpers({ hidden, view, nav }: { hidden: Profile["hidden"]; view: View; nav: Navigation }) {
  if (hidden.threads === 0 && !view.helpers) return null;
  const title = "Threads that gpusonde and CUPTI run inside the profiled programs";
  return (
    <button type="button" class="quiet" title={title} aria-pressed={view.helpers} onClick={() => nav.step({ helpers: !view.helpers, zoom: null })}>
      {view.helpers ? "hide profiler threads" : `+ ${formatDuration(hidden.total)} in ${formatCount(hidden.threads)} profiler ${hidden.threads === 1 ? "thread" : "threads"}`}
    </button>
  );
}
