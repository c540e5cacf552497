// SPDX-License-Identifier: Apache-2.0
#include "server/compare_selections.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json_writer.h"
#include "base/time.h"
#include "base/time_range.h"
#include "compare/comparison.h"
#include "compare/run.h"
#include "compare/stack_diff.h"
#include "compare/stack_json.h"

namespace gpusonde::server {
namespace {

// Of each list; the largest differences come first.
constexpr size_t kMaxComparedLines = 200;
// Frames of the flame graph: more can't be distinguished.
constexpr size_t kMaxComparedFrames = 20'000;

// The part of the data's time that is selected; empty without data.
std::optional<TimeRange> TimeOf(const model::Selection& selection, const store::Overview& overview) {
  if (!overview.from_ns.has_value() || !overview.to_ns.has_value()) return std::nullopt;
  const TimeRange range{std::max(selection.from_ns, *overview.from_ns),
                        std::min(selection.to_ns, *overview.to_ns)};
  return range.from_ns < range.to_ns ? std::optional(range) : std::nullopt;
}

void WriteSide(JsonWriter& json, std::string_view key, const std::optional<TimeRange>& range) {
  std::optional<int64_t> from_us, to_us;
  if (range.has_value()) {
    from_us = range->from_ns / kNanosPerMicro;
    to_us = (range->to_ns + kNanosPerMicro - 1) / kNanosPerMicro;
  }
  json.Key(key).BeginObject().Field("from_us", from_us).Field("to_us", to_us).EndObject();
}

// Why the GPU work can't be compared; empty if it can.
std::string WhyNot(const compare::Run& a, const compare::Run& b) {
  if (a.ranks == 0 && b.ranks == 0) return "neither A nor B has GPU work";
  if (a.ranks == 0 || b.ranks == 0) return fmt::format("{} has no GPU work", a.ranks == 0 ? "A" : "B");
  return "";
}

}  // namespace

Result<ComparisonQuestion> TakeComparisonQuestion(QueryParameters& parameters) {
  ComparisonQuestion question;
  ASSIGN_OR_RETURN(question.b, TakeProfileQuestion(parameters));
  const model::Selection& b = question.b.selection;
  ASSIGN_OR_RETURN(question.a, parameters.TakeBase(b));
  if (question.a.from_ns == b.from_ns && question.a.to_ns == b.to_ns && question.a.processes == b.processes)
    return Fail(ErrorCode::kInvalidArgument,
                "A and B are the same: give another time (base_from_us and base_to_us) or other processes "
                "(base_process) for A");
  return question;
}

Result<std::string> CompareSelections(ApiData& data, const ComparisonQuestion& question) {
  const auto& [type, selection_b] = question.b;
  ASSIGN_OR_RETURN(const store::Overview overview, data.ReadOverview());
  const auto range_a = TimeOf(question.a, overview), range_b = TimeOf(selection_b, overview);
  Result<compare::Run> a = data.ReadRun(question.a, "A");
  if (!a.has_value()) return Fail(std::move(a).error().With("A"));
  Result<compare::Run> b = data.ReadRun(selection_b, "B");
  if (!b.has_value()) return Fail(std::move(b).error().With("B"));
  ASSIGN_OR_RETURN(const model::Profile profile_a, ReadProfile(data, type, question.a));
  ASSIGN_OR_RETURN(const model::Profile profile_b, ReadProfile(data, type, selection_b));

  JsonWriter json;
  json.BeginObject().Field("type", model::EnumNames<model::ProfileType>::Name(type));
  WriteSide(json, "a", range_a);
  WriteSide(json, "b", range_b);
  const std::string why_not = WhyNot(*a, *b);
  compare::StackDiff stacks(type);
  // Of B's time: for as much work as A did, or if that isn't known, for as long a time.
  double divisor = range_a.has_value() && range_b.has_value() ? LengthNs(*range_b) / LengthNs(*range_a) : 1;
  bool by_work = false;
  json.Field("why_not", why_not).Key("gpu");
  if (why_not.empty()) {
    const compare::Comparison comparison = compare::Compare({*std::move(a)}, {*std::move(b)}, {});
    by_work = comparison.work.has_value();
    if (by_work) divisor = comparison.divisor_b;
    std::string compared = compare::ToJson(comparison, kMaxComparedLines);
    compared.pop_back();  // its line break
    json.Raw(compared).Key("sentences").BeginArray();
    for (const std::string& sentence : compare::SentencesOf(comparison)) json.Value(sentence);
    json.EndArray();
  } else {
    json.Value(std::optional<double>()).Key("sentences").BeginArray().EndArray();
  }
  stacks.Add(profile_a, false, 1);
  stacks.Add(profile_b, true, divisor);
  json.Field("by_work", by_work).Field("divisor", divisor).Key("stacks");
  compare::WriteStacks(json, stacks, kMaxComparedFrames);
  json.EndObject();
  return json.Take();
}

}  // namespace gpusonde::server
