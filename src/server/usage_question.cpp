// SPDX-License-Identifier: Apache-2.0
#include "server/usage_question.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>
#include <string_view>

namespace gpusonde::server {

Result<UsageQuestion> TakeUsageQuestion(QueryParameters& parameters) {
  UsageQuestion question;
  const std::string_view name = parameters.TakeText("by").value_or("owner");
  const std::optional<usage::SumBy> by = usage::FindBy(name);
  if (!by.has_value())
    return Fail(ErrorCode::kInvalidArgument, fmt::format("parameter 'by' takes {} or label:NAME, not '{}'",
                                                         fmt::join(usage::kByNames, ", "), name));
  question.by = *by;
  ASSIGN_OR_RETURN(question.selection, parameters.TakeTimeRange());
  TRY(parameters.Finish());
  return question;
}

}  // namespace gpusonde::server
