// SPDX-License-Identifier: Apache-2.0
#include "analyze/rank_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpusonde::analyze {
namespace {

using ::testing::ElementsAre;
using ::testing::Optional;

TEST(RankInName, IsTheNumberAfterTheLastRank) {
  EXPECT_THAT(RankInName("/rank7/report_rank12.sqlite"), Optional(12));
  EXPECT_THAT(RankInName("Rank-3.json"), Optional(3));
  EXPECT_THAT(RankInName("rank1_of_ranks.json"), Optional(1));
  EXPECT_EQ(RankInName("/rank7/report.sqlite"), std::nullopt);
  EXPECT_EQ(RankInName("crank5.json"), std::nullopt);
  EXPECT_EQ(RankInName("rank99999999999999999999.json"), std::nullopt);
}

TEST(RanksInNames, AreThereIfAllNamesHaveTheirOwn) {
  const auto of = [](const std::vector<std::string>& paths) { return RanksInNames(paths); };
  EXPECT_THAT(of({"rank10.json", "rank2.json"}), Optional(ElementsAre(10, 2)));
  EXPECT_EQ(of({"rank1.json"}), std::nullopt);
  EXPECT_EQ(of({"rank1.json", "other.json"}), std::nullopt);
  EXPECT_EQ(of({"a/rank1.json", "b/rank1.json"}), std::nullopt);
}

}  // namespace
}  // namespace gpusonde::analyze
