// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "analyze/report.h"
#include "model/short_names.h"

namespace gpusonde::analyze {

// Kinds of parts of critical paths, as tables show them.
inline constexpr std::array<std::string_view, 8> kPathColumns = {
    "computation", "communication", "other ranks", "copies", "launches", "host", "syncs", "gaps"};
// The time of each column.
std::array<int64_t, kPathColumns.size()> PathColumnsOf(const CriticalPathLine& path);

// "kernel gemm", "host in operator aten::item".
std::string PathPartText(const CriticalPathLine::Part& part, const model::ShortNames& shown);

// What the typical step of the rank with the longest typical step spends most on.
std::optional<std::string> CriticalPathSentence(const Report& report, const model::ShortNames& shown);

}  // namespace gpusonde::analyze
