// SPDX-License-Identifier: Apache-2.0
#include "otlp/late_rows.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <vector>

#include "model/batch.h"
#include "model/tables/kernel_packs.h"
#include "model/tables/metrics.h"
#include "model/tables/samples.h"

namespace gpusonde::otlp {
namespace {

template <class Table>
model::Batch Rows(const Table& table, std::initializer_list<typename Table::Row> rows) {
  model::BatchBuilder builder(table);
  for (const auto& row : rows) builder.Append(row);
  return builder.Take();
}

TEST(LateRows, CountsWhatBelongsToWindowsThatWereRead) {
  const std::vector<model::Batch> rows{Rows(model::kSamples, {{.time_ns = 99}, {.time_ns = 100}}),
                                       Rows(model::kKernelPacks, {{.start_ns = 50, .count = 7}}),
                                       Rows(model::kMetrics, {{.time_ns = 1}})};
  LateRows late;
  late.Count(rows);
  EXPECT_EQ(late.count(), 0) << "nothing was read yet";
  late.BeginReading(100);
  late.Count(rows);
  EXPECT_EQ(late.count(), 8);
  late.Count(rows);
  EXPECT_EQ(late.count(), 16);
}

TEST(LateRows, TablesWithoutTheirColumnsAreNone) {
  LateRows late;
  late.BeginReading(100);
  late.Count(std::vector<model::Batch>{{.table = "samples", .rows = 5, .columns = {}}});
  EXPECT_EQ(late.count(), 0);
}

}  // namespace
}  // namespace gpusonde::otlp
