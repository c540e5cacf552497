// SPDX-License-Identifier: Apache-2.0
import type { HostData } from "../state/use-host-data";
import { MetricStrip } from "./strip";

// With more strips than this, each is lower.
const MAX_HIGH_STRIPS = 3;

// The strips above every page, on one time axis, with one brush.
export function StripsPanel({ data, isDark }: { data: HostData; isDark: boolean }) {
  const { view, nav, window } = data;
  const { data: strips, error } = data.strips;
  const shown = strips?.strips ?? [];
  const marksOf = (device?: string) => (device ? (strips?.marks.filter((mark) => mark.device === device) ?? []) : []);
  return (
    <>
      <div class="strips">
        {window &&
          shown.map((strip, i) => (
            <MetricStrip
              key={strip.id}
              strips={strips!}
              strip={strip}
              window={window}
              brush={view.brush}
              base={view.page === "compare" ? (view.base?.time ?? null) : null}
              onBrush={(brush, step) => (step ? nav.step({ brush }) : nav.adjust({ brush }))}
              isDark={isDark}
              marks={shown.findIndex(({ device }) => device === strip.device) === i ? marksOf(strip.device) : []}
              low={shown.length > MAX_HIGH_STRIPS || strip.metric !== undefined}
              axis={i === shown.length - 1}
            />
          ))}
      </div>
      {view.metrics && strips && !shown.some(({ metric }) => metric) && (
        <p class="hint">
          No clocks, power or memory of GPUs in this time: no NVIDIA driver responded. Run <code>gpusonde doctor</code> to see what is missing.
        </p>
      )}
      {window && !strips && !error && <div class="strip" aria-hidden="true" />}
    </>
  );
}
