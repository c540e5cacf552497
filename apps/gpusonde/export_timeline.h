// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"
#include "exporters/timeline/timeline_format.h"
#include "selection_flags.h"
#include "store/store.h"

namespace gpusonde::app {

// Writes the selection's timeline to the descriptor `to` in this format, and returns what it holds, for
// people: "812 kernels, copies and sets, 813 calls". Errors: kNotFound for an empty selection; those of
// SelectAmongAll, Store::Query and WriteAll.
Result<std::string> ExportTimeline(store::Store& store, const SelectionFlags& selection,
                                   const exporters::TimelineFormat& format, const std::string& title, int to);

}  // namespace gpusonde::app
