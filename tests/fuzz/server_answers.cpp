// SPDX-License-Identifier: Apache-2.0
// Answers of a server to the program's own clients: SQL, incidents, and whether it is `serve`.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "server/incidents_answer.h"
#include "server/sql_rows.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace gpusonde::server;  // NOLINT(google-build-using-namespace): a program of its own
  const std::string text(reinterpret_cast<const char*>(data), size);
  (void)IsOverviewOfServe(text);
  if (const auto incidents = ParseIncidents(text); incidents.has_value() && ToText(*incidents).empty())
    std::abort();
  const auto answer = ParseSqlAnswer(text);
  if (!answer.has_value()) return 0;
  for (auto row = answer->rows->Next(); row.has_value() && *row; row = answer->rows->Next())
    for (size_t column = 0; column < answer->rows->columns().size(); ++column)
      (void)answer->rows->Display(column);
  return 0;
}
