// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"
#include "model/selection.h"
#include "server/query_parameters.h"
#include "usage/usage.h"

namespace gpusonde::server {

// What a request for /api/v1/usage asks.
struct UsageQuestion {
  model::Selection selection;  // only a time range
  usage::SumBy by;
};

// Takes all parameters. Errors: kInvalidArgument.
Result<UsageQuestion> TakeUsageQuestion(QueryParameters& parameters);

}  // namespace gpusonde::server
