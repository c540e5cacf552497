// SPDX-License-Identifier: Apache-2.0
#include "export_timeline.h"

#include <fmt/format.h>

#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "base/counted.h"
#include "base/fd.h"
#include "store/queries/timeline_query.h"

namespace gpusonde::app {
namespace {

std::string Describe(const store::TimelineCounts& counts) {
  std::string text;
  const auto add = [&text](int64_t count, std::string_view what) {
    if (count > 0) text += (text.empty() ? "" : ", ") + Counted(count, what);
  };
  if (counts.gpu_work > 0) text = fmt::format("{} kernels, copies and sets", counts.gpu_work);
  add(counts.calls, "call");
  add(counts.ranges, "range");
  add(counts.steps, "step");
  add(counts.incidents, "incident");
  add(counts.metric_values, "metric value");
  return text;
}

}  // namespace

Result<std::string> ExportTimeline(store::Store& store, const SelectionFlags& selection,
                                   const exporters::TimelineFormat& format, const std::string& title,
                                   int to) {
  ASSIGN_OR_RETURN(const model::Selection selected, SelectAmongAll(store, selection));
  const auto sink = format.create(
      [to](std::string_view bytes) { return WriteAll(to, std::as_bytes(std::span(bytes))); }, title);
  ASSIGN_OR_RETURN(const store::TimelineCounts counts, store::ReadTimeline(store, selected, *sink));
  std::string holds = Describe(counts);
  if (holds.empty())
    return Fail(ErrorCode::kNotFound, "no GPU work, calls, ranges, steps or metrics in this selection");
  return holds;
}

}  // namespace gpusonde::app
