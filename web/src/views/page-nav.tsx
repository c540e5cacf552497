// SPDX-License-Identifier: Apache-2.0
import type { ComponentChildren } from "preact";
import { formatCount } from "../format";
import { printable } from "../printable";
import type { HostData } from "../state/use-host-data";
import { formatView, type View } from "../state/view";
import { TimeType } from "./time-type";

const TITLES: Record<View["page"], string> = { profile: "Profile", timeline: "Timeline", compare: "Compare", incidents: "Incidents", usage: "Usage" };

// What a view shows: a page, or in the place of the profile a source file.
export function titleOf({ page, source }: View): string {
  return page === "profile" && source ? printable(source.slice(source.lastIndexOf("/") + 1)) : TITLES[page];
}

// The links to the pages, and choices of what they show.
export function PageNav({ data }: { data: HostData }) {
  const { view, nav, available } = data;
  const open = data.incidents.data?.incidents.length ?? 0;
  const xids = data.strips.data?.marks.filter(({ kind }) => kind === "xid").length ?? 0;
  const hasType = view.page === "profile" || view.page === "compare";
  const hasGpus = (data.devices.data?.devices.length ?? 0) > 0;
  return (
    <div class="pages">
      <nav aria-label="Pages">
        <PageLink page="profile" data={data} />
        {view.source && view.page === "profile" && (
          <a href={location.search} aria-current="page" title={printable(view.source)} onClick={(event) => event.preventDefault()}>
            {titleOf(view)}
          </a>
        )}
        <PageLink page="timeline" data={data} />
        <PageLink page="compare" data={data} />
        <PageLink page="incidents" data={data}>
          {open > 0 && <span class="alarm"> {formatCount(open)}</span>}
        </PageLink>
        <PageLink page="usage" data={data} />
      </nav>
      {hasGpus && (
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
      {available && hasType && <TimeType view={view} nav={nav} hasGpus={hasGpus} />}
    </div>
  );
}

interface LinkProps {
  page: View["page"];
  data: HostData;
  // After its title.
  children?: ComponentChildren;
}

// A link to a page that keeps the selection.
function PageLink({ page, data: { view, nav, opensOn }, children }: LinkProps) {
  const go = (event: MouseEvent) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    nav.step({ page, source: null });
  };
  return (
    <a
      href={formatView({ ...view, page, source: null }, opensOn) || "?"}
      aria-current={view.page === page && !view.source ? "page" : undefined}
      onClick={go}
    >
      {TITLES[page]}
      {children}
    </a>
  );
}
