// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"
#include "server/api.h"
#include "server/profile_question.h"
#include "server/query_parameters.h"

namespace gpusonde::server {

// Two parts of the same data: A before, B after.
struct ComparisonQuestion {
  ProfileQuestion b;
  model::Selection a;
};

// Takes the parameters of a flame graph for B, and `base_from_us`, `base_to_us` and `base_process` for what
// is different in A. Errors: kInvalidArgument, naming the parameter; also if A is B.
Result<ComparisonQuestion> TakeComparisonQuestion(QueryParameters& parameters);

// The answer as docs/api.md describes it: what compare::Compare finds between their GPU work, and time by
// stack. Errors: those of the data; kInvalidArgument if a side has too much GPU work.
Result<std::string> CompareSelections(ApiData& data, const ComparisonQuestion& question);

}  // namespace gpusonde::server
