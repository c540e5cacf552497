// SPDX-License-Identifier: Apache-2.0
#include "importers/nsys/gpu_metrics.h"

#include <array>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "importers/sqlite/for_each_row.h"

namespace gpusonde::importers::nsys {
namespace {

constexpr std::string_view kClockMetric = "GPC Clock Frequency";

// Values are in Hz, whatever the metric's name says, and some versions export them as negative 32-bit
// numbers; others may be in MHz.
int32_t MegahertzOf(int64_t value) {
  constexpr int64_t kHertz = 1'000'000;
  if (value < 0) value &= 0xFFFF'FFFF;
  if (value >= kHertz) value /= kHertz;
  return value <= 100'000 ? static_cast<int32_t>(value) : 0;
}

Result<Clocks> Read(const sqlite::Database& database) {
  Clocks clocks;
  std::set<std::pair<int64_t, int64_t>> metrics;  // by type, which has the GPU's number in its last byte
  constexpr std::array<std::string_view, 3> kMetricColumns = {"typeId", "metricId", "metricName"};
  TRY(sqlite::ForEachRow(database, "TARGET_INFO_GPU_METRICS", kMetricColumns,
                         [&](std::span<const sqlite::Cell> cells) {
                           constexpr size_t kMaxMetrics = 1'024;
                           if (cells[2].bytes.starts_with(kClockMetric) && metrics.size() < kMaxMetrics)
                             metrics.emplace(cells[0].integer, cells[1].integer);
                         }));
  if (metrics.empty()) return clocks;
  constexpr std::array<std::string_view, 3> kDeviceColumns = {"gpuId", "cudaId", "pid"};
  TRY(sqlite::ForEachRow(database, "TARGET_INFO_CUDA_DEVICE", kDeviceColumns,
                         [&](std::span<const sqlite::Cell> cells) {
                           clocks.Map(static_cast<int32_t>(cells[0].integer), cells[2].integer,
                                      static_cast<int32_t>(cells[1].integer));
                         }));
  ASSIGN_OR_RETURN(const std::optional<sqlite::Table> table, database.FindTable("GPU_METRICS"));
  if (!table.has_value()) return clocks;
  std::vector<size_t> columns;
  for (const std::string_view name : {"timestamp", "typeId", "metricId", "value"}) {
    const std::optional<size_t> column = table->Find(name);
    if (!column.has_value()) return clocks;
    columns.push_back(*column);
  }
  ASSIGN_OR_RETURN(const auto reader, table->Read(columns));
  sqlite::IntegerRows rows;
  for (size_t part = 0; part < table->parts(); ++part) {
    TRY(reader->Seek(part));
    while (true) {
      ASSIGN_OR_RETURN(const bool more, reader->NextIntegers(rows));
      if (!more) break;
      for (size_t row = 0; row < rows.count; ++row) {
        const std::span<const int64_t> values = rows.values.subspan(row * rows.stride, columns.size());
        if ((rows.integers[row] & 0b1111) != 0b1111 || !metrics.contains({values[1], values[2]})) continue;
        clocks.Add(static_cast<int32_t>(values[1] & 0xFF),
                   {.time_ns = values[0], .mhz = MegahertzOf(values[3])});
      }
    }
  }
  return clocks;
}

}  // namespace

Result<Clocks> ReadGpuMetrics(const std::string& path, const OpenOptions& options) {
  const auto access = options.partial ? sqlite::Access::kPartial : sqlite::Access::kFastest;
  ASSIGN_OR_RETURN(const auto database, sqlite::Database::Open(path, access, options.temp_limit));
  auto clocks = Read(*database);
  if (!clocks.has_value()) return Fail(std::move(clocks).error().With(path + ": GPU metrics"));
  return clocks;
}

}  // namespace gpusonde::importers::nsys
