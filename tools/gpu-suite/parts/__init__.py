# SPDX-License-Identifier: Apache-2.0
"""The parts in the order in which they run, quick ones first. A part is a module with TITLE, NEEDS (a phrase) and
run(suite) -> Result, which raises Skip with the reason if it can't run."""

from . import (attach, doctor, examples, graphs, launches, machine, ncu, nvml, other_tool, steps, streams, torch_graphs,
               torch_totals)

ALL = {
    "machine": machine,
    "doctor": doctor,
    "examples": examples,
    "launches": launches,
    "graphs": graphs,
    "other-tool": other_tool,
    "attach": attach,
    "steps": steps,
    "totals": torch_totals,
    "torch-graphs": torch_graphs,
    "nvml": nvml,
    "streams": streams,
    "ncu": ncu,
}
