// SPDX-License-Identifier: Apache-2.0
#include "store/name_cache.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "model/tables/stacks.h"

namespace gpusonde::store {
namespace {

using Functions = KeptRows<model::Profile::Function>;

Functions::Found Named(uint64_t first, uint64_t count, size_t name_bytes) {
  Functions::Found rows;
  for (uint64_t i = first; i < first + count; ++i)
    rows[{0, i}] = std::make_shared<model::Profile::Function>(std::string(name_bytes, 'f'), "", "", 0);
  return rows;
}

size_t FoundOf(Functions& kept, uint64_t first, uint64_t count) {
  std::vector<Id128> ids;
  for (uint64_t i = first; i < first + count; ++i) ids.push_back({0, i});
  Functions::Found found;
  kept.Find(ids, found);
  EXPECT_EQ(ids.size() + found.size(), count);
  return found.size();
}

TEST(KeptRowsTest, AreFoundUntilTheyAreForgotten) {
  Functions kept;
  kept.Keep(Named(0, 10, 100), 0);
  EXPECT_EQ(FoundOf(kept, 5, 10), 5u);
  kept.Forget(std::array{Id128{0, 5}, Id128{0, 50}});
  EXPECT_EQ(FoundOf(kept, 0, 10), 9u);
  for (uint64_t i = 0; i < 10; ++i) kept.Forget(std::array{Id128{0, i}});
  EXPECT_EQ(kept.bytes(), 0u);
}

TEST(KeptRowsTest, WhatWasReadBeforeSomethingWasForgottenIsNotKept) {
  Functions kept;
  std::vector<Id128> ids = {{0, 1}};
  Functions::Found found;
  const RowVersion before = kept.Find(ids, found);
  kept.Forget(ids);
  kept.Keep(Named(1, 1, 100), before);
  kept.Keep(Named(2, 1, 100), kept.Find(ids, found));
  EXPECT_EQ(FoundOf(kept, 1, 1), 0u);
  EXPECT_EQ(FoundOf(kept, 2, 1), 1u);
}

TEST(KeptRowsTest, NothingIsKeptOfWhatWasThereOrReadBeforeTheyWereCleared) {
  NameCache names;
  names.functions.Keep(Named(1, 10, 100), 0);
  names.stacks.Keep({{Id128{4, 1}, std::make_shared<const std::vector<Id128>>(10)}}, 0);
  std::vector<Id128> ids = {{0, 20}};
  Functions::Found found;
  const RowVersion before = names.functions.Find(ids, found);
  names.Clear();
  names.functions.Keep(Named(20, 1, 100), before);
  EXPECT_EQ(FoundOf(names.functions, 0, 30), 0u);
  EXPECT_EQ(names.functions.bytes() + names.stacks.bytes(), 0u);
  names.functions.Keep(Named(20, 1, 100), names.functions.Find(ids, found));
  EXPECT_EQ(FoundOf(names.functions, 20, 1), 1u);
}

TEST(KeptRowsTest, BatchesForgetWhatTheyReplaceAndEmptyOnesNothing) {
  NameCache names;
  names.stacks.Keep({{Id128{4, 1}, std::make_shared<const std::vector<Id128>>(10)}}, 0);
  const auto is_kept = [&names] {
    std::vector<Id128> ids = {{4, 1}};
    KeptRows<std::vector<Id128>>::Found found;
    names.stacks.Find(ids, found);
    return !found.empty();
  };
  model::BatchBuilder rows(model::kStacks);
  names.Forget(std::array{rows.Take()});
  EXPECT_TRUE(is_kept());
  rows.Append({.stack = {4, 1}, .locations = {}});
  names.Forget(std::array{rows.Take()});
  EXPECT_FALSE(is_kept());
}

TEST(KeptRowsTest, TakeNoMoreThanTheirShareOfMemory) {
  Functions kept;
  for (uint64_t round = 0; round < 40; ++round) {
    kept.Keep(Named(round * 100, 100, 10'000), 0);
    EXPECT_LE(kept.bytes(), Functions::kMaxBytes);
  }
  EXPECT_EQ(FoundOf(kept, 3900, 100), 100u) << "the newest stay";
  kept.Keep(Named(10'000, 2'000, 10'000), 0);
  EXPECT_EQ(FoundOf(kept, 10'000, 2'000), 0u) << "too many to be kept";
  EXPECT_EQ(FoundOf(kept, 3900, 100), 100u);
}

}  // namespace
}  // namespace gpusonde::store
