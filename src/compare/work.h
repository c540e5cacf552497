// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "compare/run.h"

namespace gpusonde::compare {

// B's amount of work as a multiple of A's; empty if their kernels don't agree about it. See Comparison::work.
std::optional<double> WorkOf(const Run& a, const Run& b);

// Likewise by the steps of their programs; empty if these have none, or others.
std::optional<double> WorkBySteps(const Run& a, const Run& b);

// Whether only the steps are known, or more kernels agree with them than with the work by kernels: a kernel
// with most of the time alone decides that, also where a step of B has more launches of it than one of A.
bool StepsAreBetter(const Run& a, const Run& b);

// The relative difference of launches that their variation over time explains.
double VariationOf(const analyze::MeanError& a, const analyze::MeanError& b);

// The chance with which counts may vary by that much.
inline constexpr double kTailOfCounts = 0.001;
// Counts that differ by less than this are as the amount of work explains.
inline constexpr double kMinCountChange = 0.02;

}  // namespace gpusonde::compare
