// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "mcp/arguments.h"
#include "mcp/source.h"

namespace gpusonde::mcp {

// A key of a tool's answer.
struct ResultField {
  std::string_view name;
  std::string_view type;  // of JSON Schema: "array", "object", "string", "number", "integer", "boolean"
  std::string_view description;
  bool nullable = false;
};

// A question that clients may ask. It only reads.
struct Tool {
  std::string_view name;
  std::string_view title;
  std::string_view description;  // for the assistant, which chooses tools by it
  bool needs_files = false;      // works only where Source::has_files
  std::vector<Parameter> parameters;
  std::vector<ResultField> results;  // all are always there
  // Returns the object with the results, which FinishAnswer completes. Errors are for the assistant to read.
  Result<std::string> (*run)(Source& source, const Arguments& arguments);
};

// One per file of tools/.
Tool GpuUsageTool();
Tool HottestPathsTool();
Tool IncidentsTool();
Tool OverviewTool();
Tool QuerySqlTool();
Tool TraceFindingsTool();
Tool WhileGpuIdleTool();

// All of them, by name.
const std::vector<Tool>& AllTools();

// How many elements each list of an answer may have: the argument that every tool with lists takes.
Parameter LimitParameter(int64_t otherwise, int64_t max);
inline constexpr std::string_view kLimit = "limit";

// How long a call may take: the argument `timeout_s`, else this.
inline constexpr std::string_view kTimeout = "timeout_s";
inline constexpr int64_t kDefaultTimeoutS = 30;

// The entry of `tools/list`.
std::string ToolJson(const Tool& tool);

}  // namespace gpusonde::mcp
