// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "model/selection.h"
#include "server/query_parameters.h"
#include "usage/report.h"
#include "usage/usage.h"

namespace gpusonde::server {

// What a request for /api/v1/usage asks.
struct UsageQuestion {
  model::Selection selection;  // only a time range
  usage::SumBy by;
  usage::Price price;
  size_t width = 0;  // of text, in characters; 0: unlimited
};

// Takes all parameters. Errors: kInvalidArgument.
Result<UsageQuestion> TakeUsageQuestion(QueryParameters& parameters);

// The forms of the answer, each with an address of its own.
struct UsageForm {
  std::string_view path;
  std::string_view content_type;
  std::string (*write)(const usage::Usage& usage, const UsageQuestion& question);
};
std::span<const UsageForm> UsageForms();
// Null for the path of something else.
const UsageForm* FindUsageForm(std::string_view path);

}  // namespace gpusonde::server
