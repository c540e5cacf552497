// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

#include "unwind/cfi.h"
#include "unwind/rule_set.h"

namespace gpusonde::unwind {

// Runs the call frame instructions of one function (DWARF 5, section 6.4.2) and calls row(address, rule) for
// its begin and for every address where the rule changes, in ascending order. Rules that can't be expressed
// are GPUSONDE_CFA_UNSUPPORTED. False for malformed instructions; the last row then is GPUSONDE_CFA_NONE.
bool RunCfaProgram(const Fde& fde, const std::function<void(uint64_t address, const Rule& rule)>& row);

}  // namespace gpusonde::unwind
