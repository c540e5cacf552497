// SPDX-License-Identifier: Apache-2.0
#include "otlp/late_rows.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include "model/tables/kernel_packs.h"
#include "model/tables/memcpys.h"
#include "model/tables/memsets.h"
#include "model/tables/samples.h"

namespace gpusonde::otlp {
namespace {

// The tables that profiles are read from.
struct ProfiledTable {
  std::string_view table;
  std::string_view begin;
  std::string_view count;  // of what a row stands for; empty: 1
};
constexpr std::array kProfiled{ProfiledTable{model::kSamples.name(), "time_ns", ""},
                               ProfiledTable{model::kKernelPacks.name(), "start_ns", "count"},
                               ProfiledTable{model::kMemcpys.name(), "start_ns", ""},
                               ProfiledTable{model::kMemsets.name(), "start_ns", ""}};

// Null without the column.
const model::ColumnData* FindColumn(const model::Batch& batch, std::string_view name) {
  const auto found = std::ranges::find(batch.columns, name, &model::ColumnData::name);
  return found == batch.columns.end() ? nullptr : &*found;
}

int64_t Int64At(const model::ColumnData& column, size_t row) {
  int64_t value = 0;
  std::memcpy(&value, column.values.data() + row * sizeof value, sizeof value);
  return value;
}

}  // namespace

void LateRows::Count(std::span<const model::Batch> batches) {
  const int64_t read_until_ns = read_until_ns_;
  for (const model::Batch& batch : batches) {
    const auto profiled = std::ranges::find(kProfiled, batch.table, &ProfiledTable::table);
    if (profiled == kProfiled.end()) continue;
    const model::ColumnData* const begin = FindColumn(batch, profiled->begin);
    const model::ColumnData* const count = FindColumn(batch, profiled->count);
    if (begin == nullptr) continue;
    for (size_t row = 0; row < batch.rows; ++row)
      if (Int64At(*begin, row) < read_until_ns) count_ += count == nullptr ? 1 : Int64At(*count, row);
  }
}

}  // namespace gpusonde::otlp
