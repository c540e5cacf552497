# SPDX-License-Identifier: Apache-2.0
"""The parts in the order in which they run, quick ones first. A part is a module with TITLE, NEEDS (a phrase) and
run(suite) -> Result, which raises Skip with the reason if it can't run."""

from . import (attach, cycles, doctor, examples, frameworks, graphs, launches, machine, modules, ncu, nvml, other_tool,
               ranks, steps, streams, torch_graphs, torch_totals, watched)

ALL = {
    "machine": machine,
    "doctor": doctor,
    "examples": examples,
    "launches": launches,
    "graphs": graphs,
    "modules": modules,
    "other-tool": other_tool,
    "attach": attach,
    "cycles": cycles,
    "steps": steps,
    "totals": torch_totals,
    "torch-graphs": torch_graphs,
    "frameworks": frameworks,
    "ranks": ranks,
    "watched": watched,
    "nvml": nvml,
    "streams": streams,
    "ncu": ncu,
}
