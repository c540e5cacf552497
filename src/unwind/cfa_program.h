// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

#include "unwind/cfi.h"
#include "unwind/rule_set.h"

namespace gpusonde::unwind {

// Runs the call frame instructions of one function (DWARF 5, section 6.4.2) and calls row(address, rule) for
// its begin and for every address where the rule changes, rising. What the rules can't say is
// GPUSONDE_CFA_UNSUPPORTED. False for instructions that don't parse: the last row then says
// GPUSONDE_CFA_NONE.
bool RunCfaProgram(const Fde& fde, const std::function<void(uint64_t address, const Rule& rule)>& row);

}  // namespace gpusonde::unwind
