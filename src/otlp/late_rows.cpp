// SPDX-License-Identifier: Apache-2.0
#include "otlp/late_rows.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "model/column.h"
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

}  // namespace

void LateRows::Count(std::span<const model::Batch> batches) {
  const int64_t read_until_ns = read_until_ns_;
  if (read_until_ns == kNothing) return;
  for (const model::Batch& batch : batches) {
    const auto profiled = std::ranges::find(kProfiled, batch.table, &ProfiledTable::table);
    if (profiled == kProfiled.end()) continue;
    const model::Column begin(batch, profiled->begin);
    const model::Column count(batch, profiled->count);
    for (size_t row = 0; row < batch.rows; ++row)
      if (begin.Has(row) && begin.At<int64_t>(row) < read_until_ns)
        count_ += count.Has(row) ? count.At<int64_t>(row) : 1;
  }
}

}  // namespace gpusonde::otlp
