// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "base/testing/units.h"
#include "model/tables/kernel_packs.h"
#include "model/tables/kernels.h"
#include "store/recordings/testing/memory_store.h"
#include "store/sql/sql_part.h"
#include "store/sql/time_range.h"

// A store of GPU work for tests.
namespace gpusonde::store {

inline constexpr Id128 kSqlProcess{5, 1}, kDevice{6, 1};

class GpuSqlTest : public MemoryStoreTest {
 protected:
  void AddKernels(const std::vector<TimeRange>& times) {
    std::vector<model::Kernel> rows;
    for (const TimeRange& time : times) {
      model::Kernel& row = rows.emplace_back();
      row.process = kSqlProcess;
      row.device = kDevice;
      row.session = 1;
      row.start_ns = time.from_ns;
      row.end_ns = time.to_ns;
    }
    Add(model::kKernels, rows);
  }

  // Kernels of 1 µs that start within a full second, as the always-on agent stores them.
  void AddPack(int64_t second_ns, int64_t count) {
    model::KernelPack pack;
    pack.process = kSqlProcess;
    pack.device = kDevice;
    pack.session = 1;
    pack.start_ns = second_ns;
    pack.end_ns = second_ns + kSecond;
    pack.count = count;
    for (int64_t i = 0; i < count; ++i) {
      pack.offsets_ns.push_back(i * (kSecond / count));
      pack.durations_ns.push_back(1'000);
      pack.correlations.push_back(0);
    }
    Add(model::kKernelPacks, {pack});
  }

  int64_t Count(const SqlPart& rows) {
    SqlPart sql{"SELECT count(*) FROM ", {}};
    sql += rows;
    auto counted = store_->Query(sql.text, sql.parameters);
    EXPECT_TRUE(counted.has_value()) << counted.error().message;
    if (!counted.has_value() || !(*counted)->Next().value_or(false)) return -1;
    return (*counted)->Int64(0);
  }
};

}  // namespace gpusonde::store
