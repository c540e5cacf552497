// SPDX-License-Identifier: Apache-2.0
#include "mcp/tool.h"

namespace gpusonde::mcp {

Tool QuerySqlTool() {
  return {
      .name = "query_sql",
      .title = "Read-only SQL",
      .description =
          "One read-only statement of DuckDB's SQL over the files, for questions that no other tool answers. "
          "SHOW TABLES and DESCRIBE TABLE list tables and columns. Times are ns since the Unix epoch (…_ns), "
          "ids UUIDs. GPU work: kernels (name, device, stream, start_ns, end_ns), memcpys, memsets. CPU "
          "samples: samples (state = 'on_cpu', weight_ns) with threads, processes, stacks. Also steps, "
          "incidents, evidence, metrics, ranges. Aggregate in SQL rather than reading many rows.",
      .needs_files = true,
      .parameters = {{.name = "sql",
                      .description = "SELECT, WITH, SHOW, DESCRIBE, SUMMARIZE or EXPLAIN.",
                      .type = Parameter::Type::kText,
                      .required = true,
                      .max_bytes = 20'000},
                     LimitParameter(50, 500),
                     {.name = kTimeout,
                      .description = "Seconds after which the statement is stopped.",
                      .min = 1,
                      .max = 60,
                      .otherwise = kDefaultTimeoutS}},
      .results = {{"columns", "array", "Name and type of each column."},
                  {"rows", "array", "The first rows: arrays of values in the order of the columns."}},
      .run = [](Source& source, const Arguments& arguments) {
        return source.Query(arguments.Text("sql"), *arguments.Integer(kLimit));
      }};
}

}  // namespace gpusonde::mcp
