// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "analyze/steps/step_candidates.h"
#include "compare/run.h"

namespace gpusonde::compare {

// Adds the ranges of a trace that its program annotated, such as NVTX's and those of PyTorch's
// record_function, by their names without digits and without the sequence numbers of PyTorch's emit_nvtx.
// Each is a kernel of one shape: what is known of how long it takes on the host, with the error of the mean
// from its variation over the time of its process.
void AddPhases(const analyze::StepCandidates& ranges, Kernels& phases);

}  // namespace gpusonde::compare
