// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "base/result.h"
#include "importers/trace.h"
#include "model/selection.h"
#include "store/store.h"

namespace gpusonde::importers::sonde {

// What is selected of an open store, of recordings or live, as a trace: GPU work, calls and ranges of the
// selection's processes that start in its time; GPU work of its device and stream only. Other conditions of
// the selection don't apply. The store must outlive the trace. Errors: kInvalidArgument, with their number,
// if there are more than `max_work` kernels, copies and sets; those of Store::Query.
Result<std::unique_ptr<Trace>> OpenSelected(store::Store& store, const model::Selection& selection,
                                            int64_t max_work);

}  // namespace gpusonde::importers::sonde
