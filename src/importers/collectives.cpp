// SPDX-License-Identifier: Apache-2.0
#include "importers/collectives.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "base/id128.h"
#include "store/recordings/recording.h"
#include "store/sql/sql_part.h"

namespace gpusonde::importers {
namespace {

enum : size_t { kCommunicator, kRank, kOperation, kSequence, kBytes, kGpuTime, kBegin, kEnd };

uint64_t IdentityOf(std::string_view communicator) {
  return IdHasher("nccl communicator").Add(communicator).Finish().low;
}

// The GPU's own clock times the kernel; NCCL's thread, which says when it saw its begin and end, polls.
std::optional<int64_t> TimeOf(const store::Rows& row) {
  if (!row.IsNull(kGpuTime)) {
    const int64_t gpu_ns = row.Int64(kGpuTime);
    return gpu_ns >= 0 && gpu_ns <= kMaxTimeNs ? std::optional(gpu_ns) : std::nullopt;
  }
  if (row.IsNull(kBegin)) return std::nullopt;
  const int64_t begin_ns = row.Int64(kBegin);
  const int64_t end_ns = row.Int64(kEnd);
  if (begin_ns < 0 || end_ns < begin_ns || end_ns > kMaxTimeNs) return std::nullopt;
  return end_ns - begin_ns;
}

Status ReadCommunicators(store::Store& store, ReportedCollectives& reported) {
  const store::SqlPart sql{
      "SELECT communicator, max(coalesce(ranks, 0))::BIGINT, max(name), "
      "sum(CASE WHEN dropped > 0 THEN dropped ELSE 0 END)::DOUBLE "
      "FROM communicators GROUP BY communicator ORDER BY communicator",
      {}};
  return store::ForEachRow(store, sql, [&](const store::Rows& row) {
    const std::string_view communicator = row.Text(0);
    const std::string_view name = row.Text(2);
    ReportedCollectives::Group& group = reported.groups[IdentityOf(communicator)];
    group.ranks = std::max<int64_t>(0, row.Int64(1));
    group.label = name.empty() ? fmt::format("communicator {}", communicator)
                               : fmt::format("{}, communicator {}", name, communicator);
    group.label.resize(std::min(group.label.size(), ProcessGroup::kMaxLabelBytes));
    reported.lost += static_cast<int64_t>(std::min(row.Float64(3), 1e18));
  });
}

Status ReadEnded(store::Store& store, ReportedCollectives& reported) {
  constexpr auto kMax = static_cast<int64_t>(ReportedCollectives::kMaxCollectives);
  ASSIGN_OR_RETURN(const auto counted,
                   store.Query("SELECT count(*) FROM collectives WHERE end_ns IS NOT NULL"));
  ASSIGN_OR_RETURN(const bool found, counted->Next());
  const int64_t count = found ? counted->Int64(0) : 0;
  if (count == 0) return {};
  reported.beyond_bound = std::max<int64_t>(0, count - kMax);
  const store::SqlPart sql{
      fmt::format("SELECT communicator, rank, operation, sequence, bytes, gpu_ns, begin_ns, end_ns "
                  "FROM collectives WHERE end_ns IS NOT NULL "
                  "ORDER BY called_ns, communicator, operation, sequence, rank LIMIT {}",
                  kMax),
      {}};
  return store::ForEachRow(store, sql, [&](const store::Rows& row) {
    ReportedCollective one{.group = IdentityOf(row.Text(kCommunicator)),
                           .operation = OperationOf(row.Text(kOperation)),
                           .sequence = row.Int64(kSequence),
                           .rank = row.Int64(kRank)};
    const auto group = reported.groups.find(one.group);
    const std::optional<int64_t> time_ns = TimeOf(row);
    if (!row.IsNull(kBytes))
      one.bytes = WholeMessage(one.operation, row.Int64(kBytes),
                               group != reported.groups.end() ? group->second.ranks : 0);
    if (one.bytes == 0 || !time_ns.has_value()) {
      ++reported.invalid;
      return;
    }
    one.time_ns = *time_ns;
    reported.ended.push_back(one);
  });
}

}  // namespace

int64_t WholeMessage(Operation operation, int64_t bytes, int64_t ranks) {
  if (operation == Operation::kUnknown || bytes <= 0) return 0;
  const bool is_part = operation != Operation::kAllReduce && operation != Operation::kBroadcast &&
                       operation != Operation::kReduce && operation != Operation::kSendReceive;
  if (is_part && __builtin_mul_overflow(bytes, ranks, &bytes)) return 0;
  return bytes > 0 && bytes <= Message::kMaxBytes ? bytes : 0;
}

void ReportedCollectives::Merge(const ReportedCollectives& other) {
  for (const auto& [identity, group] : other.groups) {
    Group& mine = groups[identity];
    mine.ranks = std::max(mine.ranks, group.ranks);
    if (mine.label.empty() || group.label < mine.label) mine.label = group.label;
  }
  ended.insert(ended.end(), other.ended.begin(), other.ended.end());
  invalid += other.invalid;
  beyond_bound += other.beyond_bound;
  lost += other.lost;
}

Result<ReportedCollectives> ReadReportedCollectives(const std::string& path, TraceFormat format) {
  ReportedCollectives reported;
  if (format != TraceFormat::kSonde) return reported;
  ASSIGN_OR_RETURN(const auto store, store::OpenRecordings({path}));
  TRY(ReadCommunicators(*store, reported));
  TRY(ReadEnded(*store, reported));
  return reported;
}

}  // namespace gpusonde::importers
