// SPDX-License-Identifier: Apache-2.0
#include "server/usage_question.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string_view>

namespace gpusonde::server {
namespace {

constexpr int64_t kMaxWidth = 1000;

constexpr UsageForm kForms[] = {
    {"/api/v1/usage", "application/json",
     [](const usage::Usage& usage, const UsageQuestion& question) {
       return usage::ToJson(usage, question.price);
     }},
    {"/api/v1/usage.csv", "text/csv; charset=utf-8",
     [](const usage::Usage& usage, const UsageQuestion& question) {
       return usage::ToCsv(usage, question.price);
     }},
    {"/api/v1/usage.txt", "text/plain; charset=utf-8",
     [](const usage::Usage& usage, const UsageQuestion& question) {
       return usage::ToText(usage, question.price, {.width = question.width});
     }},
};

}  // namespace

Result<UsageQuestion> TakeUsageQuestion(QueryParameters& parameters) {
  UsageQuestion question;
  const std::string_view name = parameters.TakeText("by").value_or("owner");
  const std::optional<usage::SumBy> by = usage::FindBy(name);
  if (!by.has_value())
    return Fail(ErrorCode::kInvalidArgument, fmt::format("parameter 'by' takes {} or label:NAME, not '{}'",
                                                         fmt::join(usage::kByNames, ", "), name));
  question.by = *by;
  ASSIGN_OR_RETURN(question.price, parameters.TakeNumber("price", 0, usage::kMaxPrice));
  ASSIGN_OR_RETURN(const auto width, parameters.TakeInteger("width", 0, kMaxWidth));
  question.width = static_cast<size_t>(width.value_or(0));
  ASSIGN_OR_RETURN(question.selection, parameters.TakeTimeRange());
  TRY(parameters.Finish());
  return question;
}

std::span<const UsageForm> UsageForms() { return kForms; }

const UsageForm* FindUsageForm(std::string_view path) {
  const auto* const form = std::ranges::find(kForms, path, &UsageForm::path);
  return form == std::end(kForms) ? nullptr : form;
}

}  // namespace gpusonde::server
