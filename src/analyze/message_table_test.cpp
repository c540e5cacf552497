// SPDX-License-Identifier: Apache-2.0
#include "analyze/message_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace gpusonde::analyze {
namespace {

using importers::Message;
using importers::Operation;

Message At(int64_t start_ns, int64_t bytes) {
  return {.start_ns = start_ns,
          .end_ns = start_ns + 10,
          .process = 1,
          .device = 2,
          .stream = 3,
          .bytes = bytes,
          .operation = Operation::kAllReduce};
}

TEST(MessageTable, FindsTheMessageOfAKernelOnItsStream) {
  MessageTable table;
  table.Add(std::vector<Message>{At(200, 8), At(100, 4)});
  table.Finish();
  ASSERT_NE(table.Find(At(100, 0)), nullptr);
  EXPECT_EQ(table.Find(At(100, 0))->bytes, 4);
  EXPECT_EQ(table.Find(At(200, 0))->bytes, 8);
  EXPECT_EQ(table.Find(At(150, 0)), nullptr);
  Message other_stream = At(100, 0);
  other_stream.stream = 4;
  EXPECT_EQ(table.Find(other_stream), nullptr);
  EXPECT_EQ(MessageTable().Find(At(100, 0)), nullptr);
}

TEST(MessageTable, CountsSizesThatAreNone) {
  MessageTable table;
  table.Add(std::vector<Message>{At(100, Message::kInvalid)});
  table.Finish();
  EXPECT_EQ(table.invalid(), 1);
  EXPECT_EQ(table.Find(At(100, 0)), nullptr);
}

TEST(MessageTable, KeepsTheFirstWhateverTheOrderAndWhoReadThem) {
  constexpr int64_t kMore = 1'000;
  std::vector<Message> all;
  for (int64_t i = 0; i < static_cast<int64_t>(MessageTable::kMaxMessages) + kMore; ++i)
    all.push_back(At(i, 1 + i));
  std::ranges::shuffle(all, std::mt19937(1));
  MessageTable one, first, second;
  one.Add(all);
  first.Add(std::span(all).first(all.size() / 3));
  second.Add(std::span(all).subspan(all.size() / 3));
  first.Merge(second);
  for (MessageTable* const table : {&one, &first}) {
    table->Finish();
    EXPECT_EQ(table->beyond_bound(), kMore);
    EXPECT_NE(table->Find(At(static_cast<int64_t>(MessageTable::kMaxMessages) - 1, 0)), nullptr);
    EXPECT_EQ(table->Find(At(static_cast<int64_t>(MessageTable::kMaxMessages), 0)), nullptr);
  }
}

}  // namespace
}  // namespace gpusonde::analyze
