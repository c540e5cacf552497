// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "model/batch.h"
#include "store/recordings/recording.h"
#include "store/store.h"

namespace gpusonde::store {

// A test over a store in memory, empty at first.
class MemoryStoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto store = CreateInMemory();
    ASSERT_TRUE(store.has_value()) << store.error().message;
    store_ = std::move(store).value();
  }

  template <class Table>
  void Add(const Table& table, const std::vector<typename Table::Row>& rows) {
    model::BatchBuilder builder(table);
    for (const auto& row : rows) builder.Append(row);
    const Status added = store_->Append({{builder.Take()}});
    ASSERT_TRUE(added.has_value()) << added.error().message;
  }

  std::unique_ptr<Store> store_;
};

}  // namespace gpusonde::store
