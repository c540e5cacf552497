// SPDX-License-Identifier: Apache-2.0
#include "mcp/tool.h"

#include <fmt/format.h>

#include "base/json_writer.h"

namespace gpusonde::mcp {
namespace {

void WriteField(JsonWriter& schema, const ResultField& field) {
  schema.Key(field.name).BeginObject().Key("type");
  if (field.nullable)
    schema.BeginArray().Value(field.type).Value("null").EndArray();
  else
    schema.Value(field.type);
  schema.Field("description", field.description).EndObject();
}

std::string OutputSchema(const Tool& tool) {
  std::vector<ResultField> fields = tool.results;
  fields.push_back({"captured_text", "string", "A warning about the names in this answer."});
  fields.push_back({"cut", "array", "What is missing because an answer is bounded."});
  JsonWriter schema;
  schema.BeginObject().Field("type", "object").Key("properties").BeginObject();
  for (const ResultField& field : fields) WriteField(schema, field);
  schema.EndObject().Key("required").BeginArray();
  for (const ResultField& field : fields) schema.Value(field.name);
  return schema.EndArray().EndObject().Take();
}

}  // namespace

const std::vector<Tool>& AllTools() {
  static const std::vector<Tool> kTools = {GpuUsageTool(),    HottestPathsTool(), IncidentsTool(),
                                           OverviewTool(),    QuerySqlTool(),     TraceFindingsTool(),
                                           WhileGpuIdleTool()};
  return kTools;
}

Parameter LimitParameter(int64_t otherwise, int64_t max) {
  return {.name = kLimit,
          .description = "How many elements each list may have.",
          .min = 1,
          .max = max,
          .otherwise = otherwise};
}

std::string ToolJson(const Tool& tool) {
  JsonWriter named, hints;
  named.BeginObject().Field("name", tool.name).Field("title", tool.title);
  named.Field("description", tool.description).EndObject();
  hints.BeginObject().Field("title", tool.title).Field("readOnlyHint", true);
  hints.Field("destructiveHint", false)
      .Field("idempotentHint", true)
      .Field("openWorldHint", false)
      .EndObject();
  std::string json = named.Take();
  json.pop_back();
  return fmt::format(R"({},"inputSchema":{},"outputSchema":{},"annotations":{}}})", json,
                     InputSchema(tool.parameters), OutputSchema(tool), hints.Take());
}

}  // namespace gpusonde::mcp
