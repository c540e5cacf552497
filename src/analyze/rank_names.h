// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gpusonde::analyze {

// The number after the last "rank" that has one in a file's name: 12 of "report_rank12.sqlite",
// "Rank-12.json".
std::optional<int64_t> RankInName(std::string_view path);

// The ranks of traces as their files' names have them, for traces that don't say theirs: shells sort rank10
// before rank2, so by their places ranks would have each other's numbers. Empty unless there are two or more,
// and each has a number of its own.
std::optional<std::vector<int64_t>> RanksInNames(std::span<const std::string> paths);

}  // namespace gpusonde::analyze
