// SPDX-License-Identifier: Apache-2.0
import { useState } from "preact/hooks";
import { narrowLongNames } from "../flamegraph/names";
import { printable } from "../printable";
import type { HostData } from "../state/use-host-data";
import { MetricStrip } from "./strip";

// With more strips than this, each is lower.
const MAX_HIGH_STRIPS = 3;
// The characters of a label for which its column has room (styles/strips.css).
const FITS = 16;

// The strips above every page, on one time axis, with one brush.
export function StripsPanel({ data, isDark }: { data: HostData; isDark: boolean }) {
  const { view, nav, window } = data;
  const { data: strips, error } = data.strips;
  const all = strips?.strips ?? [];
  // Nothing is known of the CPUs of a trace: a strip of it would say nothing, under those of GPUs.
  const shown = data.overview.data?.samples === 0 && all.length > 1 ? all.filter(({ id, values }) => id !== "cpu" || values.some((value) => value !== null)) : all;
  const labels = narrowLongNames(shown.map(({ label }) => printable(label)), FITS);
  // The strip that Tab leads to; from there the arrow keys lead to the others, of which a machine may have dozens.
  const [visited, setVisited] = useState<string | null>(null);
  const stop = shown.some(({ id }) => id === visited) ? visited : shown[0]?.id;
  const marksOf = (device?: string) => (device ? (strips?.marks.filter((mark) => mark.device === device) ?? []) : []);
  return (
    <>
      <div class="strips" onKeyDown={walkStrips}>
        {window &&
          shown.map((strip, i) => (
            <MetricStrip
              key={strip.id}
              strips={strips!}
              strip={strip}
              shown={labels[i]!}
              window={window}
              brush={view.brush}
              base={view.page === "compare" ? (view.base?.time ?? null) : null}
              onBrush={(brush, step) => (step ? nav.step({ brush }) : nav.adjust({ brush }))}
              isStop={strip.id === stop}
              onFocus={() => setVisited(strip.id)}
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

function walkStrips(event: KeyboardEvent): void {
  if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
  const here = (event.target as HTMLElement).closest(".strip");
  const next = event.key === "ArrowDown" ? here?.nextElementSibling : here?.previousElementSibling;
  event.preventDefault();
  (next as HTMLElement | null)?.focus();
}
