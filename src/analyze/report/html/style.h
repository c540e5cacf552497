// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace gpusonde::analyze {

// Colours and type are those of the UI (web/src/styles/base.css, web/src/flamegraph/palette.ts); fills have
// the meaning that they have there.
inline constexpr std::string_view kStyle = R"css(
:root { color-scheme: light dark;
  --background: #ffffff; --raised: #f5f6f7; --text: #16181c; --dim: #5f636b; --line: #e1e3e7;
  --accent: #0b5cad; --compute: #44bb99; --comm: #bbcc33; --copy: #99ddff; --graph: #ffaabb; --idle: #d4d4d4;
  --host: #ee8866; --device: #77aadd; --gap: #eedd88; --heat: #00664c; }
@media screen and (prefers-color-scheme: dark) { :root {
  --background: #121418; --raised: #1b1e23; --text: #e8eaed; --dim: #9a9fa9; --line: #272b31;
  --accent: #78b6f2; --compute: #10795b; --comm: #645db0; --copy: #006088; --graph: #6c2862; --idle: #5f6166;
  --host: #a3501a; --device: #2c3985; --gap: #726b26; --heat: #4fd6ac; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1180px; padding: 20px 24px 60px; background: var(--background);
  color: var(--text); font: 13px/18px system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", sans-serif;
  font-variant-numeric: tabular-nums; }
h1 { margin: 0; font-size: 18px; line-height: 24px; font-weight: 650; }
h2 { margin: 28px 0 6px; padding-bottom: 3px; border-bottom: 1px solid var(--line); font-size: 14px;
  font-weight: 650; }
p { margin: 4px 0 8px; max-width: 80em; overflow-wrap: anywhere; }
ul { margin: 4px 0 8px; padding-left: 18px; }
li { margin: 3px 0; max-width: 80em; overflow-wrap: anywhere; }
.dim, caption { color: var(--dim); }
.wide { overflow-x: auto; }
table { width: 100%; border-collapse: collapse; margin: 6px 0 10px; }
caption { text-align: left; padding: 2px 0 4px; }
th { text-align: left; font-weight: 600; color: var(--dim); border-bottom: 1px solid var(--line); }
th, td { padding: 2px 12px 2px 0; vertical-align: top; }
td { border-bottom: 1px solid var(--line); }
th.n, td.n { text-align: right; white-space: nowrap; }
td.name { overflow-wrap: anywhere; min-width: 16em; }
td.chart { width: 45%; min-width: 200px; vertical-align: middle; }
td.small { width: 110px; min-width: 60px; }
td.sentence { min-width: 24em; overflow-wrap: anywhere; }
svg { display: block; width: 100%; }
svg.bar, svg.strip, svg.interval { height: 14px; background: var(--raised); }
svg.bar + svg.bar { margin-top: 2px; }
td.n svg.bar { height: 3px; width: 70px; margin-left: auto; }
svg.histogram { height: 64px; border-bottom: 1px solid var(--dim); background: var(--raised); }
.compute { fill: var(--compute); } .comm { fill: var(--comm); } .copy { fill: var(--copy); }
.graph { fill: var(--graph); } .idle { fill: var(--idle); } .host { fill: var(--host); }
.device { fill: var(--device); } .gap { fill: var(--gap); }
.mark { fill: var(--dim); } .range, .value { fill: var(--accent); }
.strip path { fill: var(--heat); }
.h0 { fill-opacity: .04; } .h1 { fill-opacity: .12; } .h2 { fill-opacity: .2; } .h3 { fill-opacity: .3; }
.h4 { fill-opacity: .4; } .h5 { fill-opacity: .5; } .h6 { fill-opacity: .6; } .h7 { fill-opacity: .7; }
.h8 { fill-opacity: .8; } .h9 { fill-opacity: .9; }
.key { display: inline-flex; align-items: center; gap: 5px; margin-right: 16px; }
.key svg { width: 12px; height: 12px; }
.axis { display: flex; justify-content: space-between; color: var(--dim); }
.shapes { display: grid; grid-template-columns: repeat(auto-fill, minmax(330px, 1fr)); gap: 14px 24px; }
figure { margin: 0; break-inside: avoid; min-width: 0; display: flex; flex-direction: column; }
figcaption { overflow-wrap: anywhere; margin-bottom: auto; padding-bottom: 3px; }
.figure { white-space: nowrap; }
@media print { :root { color-scheme: light; } body { max-width: none; padding: 0; font-size: 10px; line-height: 14px; }
  * { print-color-adjust: exact; } tr { break-inside: avoid; }
  h2, h2 + p, caption { break-after: avoid; } thead, tbody tr:first-child { break-before: avoid; }
  .wide { overflow: visible; } td.name { min-width: 11em; } }
)css";

}  // namespace gpusonde::analyze
