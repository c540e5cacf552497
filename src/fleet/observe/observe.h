// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "base/result.h"
#include "fleet/fingerprint.h"
#include "fleet/observe/observation.h"
#include "fleet/observe/windows.h"
#include "model/selection.h"
#include "store/store.h"

// Observations of what a store holds of GPUs: of recordings, imported traces, and the store of `gpusonde up`.
// Of a selection only the time range counts. Work belongs to the moment at which it starts, and work that
// started before the range and runs in it to the range's begin.
//
// A GPU's work of more than size.operations operations is sampled (WindowChooser), for which it is counted by
// the second without being read; the same data and range give the same sample. If work within a second comes
// so unevenly that a window has more than four times its share of operations, only the first ones are read.
// One GPU is held in memory at a time, and of its windows as many as have 400,000 operations together.
namespace gpusonde::fleet {

// How long gpusonde ran of the range, or how long the range is of data without such times, as of imported
// traces; and of each GPU, in the order of store::ReadDevices; of one that is divided into MIG instances,
// each of these in its place. Errors: those of Store::Query.
Result<Observations> Observe(store::Store& store, const model::Selection& selection,
                             const SampleSize& size = {});

// The fingerprint of all kernels, whatever GPU they ran on: of one application. Errors: those of
// Store::Query.
Result<Fingerprint> FingerprintOf(store::Store& store, const model::Selection& selection,
                                  const SampleSize& size = {});

}  // namespace gpusonde::fleet
