// SPDX-License-Identifier: Apache-2.0
#include <string_view>

#include "store/queries/gpu_work.h"
#include "store/rollups/packs.h"
#include "store/sql/gpu_sql.h"
#include "store/sql/sql_part.h"
#include "store/tracks/read_parts.h"

namespace gpusonde::store {
namespace {

constexpr std::string_view kMemcpyPrefix = "[memcpy ";

EventKind KindOf(std::string_view name) {
  if (name.starts_with(kMemcpyPrefix)) return EventKind::kMemcpy;
  return name == "[memset]" ? EventKind::kMemset : EventKind::kKernel;
}

// A copy's kind without brackets: "htod".
std::string_view TextOf(EventKind kind, std::string_view name) {
  if (kind == EventKind::kKernel) return name;
  return kind == EventKind::kMemset
             ? "memset"
             : name.substr(kMemcpyPrefix.size(), name.size() - kMemcpyPrefix.size() - 1);
}

// Adds work with a row of its own, and that of packs.
class GpuTracks {
 public:
  GpuTracks(Store& store, const model::Selection& selection, TrackBuilder& builder)
      : store_(store), selection_(selection), builder_(builder) {}

  // Work that runs (or starts) in the part; of that which runs, only what started `before`.
  Status Read(const TimeRange& part, WorkIn which, int64_t before_ns) {
    const auto add = [&](const Pack& pack) -> Status {
      const int32_t name = builder_.NameOf(EventKind::kKernel, pack.name);
      const TrackKey key = KeyOf(pack.process, pack.device, pack.stream);
      for (size_t i = 0; i < pack.size(); ++i) {
        const int64_t start_ns = pack.StartNs(i);
        if (start_ns >= before_ns || (which == WorkIn::kStartsIn && start_ns < part.from_ns)) continue;
        builder_.Add(key, {start_ns, start_ns + pack.DurationNs(i)}, 0, name);
      }
      return {};
    };
    TRY(ForEachPack(Asking(store_), selection_, part, {.which = which, .tables = ""}, add));
    SqlPart sql{"SELECT process, device, stream, start_ns, end_ns, name FROM ", {}};
    sql += GpuWork(selection_, part, which, Packs::kNone);
    return ForEachRow(store_, sql, [&](const Rows& row) {
      if (row.Int64(3) >= before_ns) return;
      const std::string_view name = row.Text(5);
      const EventKind kind = KindOf(name);
      builder_.Add(KeyOf(row.Id(0), row.Id(1), row.Int64(2)), {row.Int64(3), row.Int64(4)}, 0,
                   builder_.NameOf(kind, TextOf(kind, name)));
    });
  }

 private:
  static TrackKey KeyOf(const Id128& process, const Id128& device, int64_t stream) {
    return {TrackKind::kStream, process, device, stream};
  }

  Store& store_;
  const model::Selection& selection_;
  TrackBuilder& builder_;
};

}  // namespace

Status ReadGpuTracks(Store& store, const model::Selection& selection, TrackBuilder& builder) {
  const TimeRange& range = builder.grid().range;
  GpuTracks tracks(store, selection, builder);
  // What started before the time, then what starts in it.
  TRY(tracks.Read({range.from_ns, range.from_ns + 1}, WorkIn::kRunsIn, range.from_ns));
  ASSIGN_OR_RETURN(const auto parts, ReadSlices(Asking(store), selection, range, kWorkRowsAtOnce));
  for (const TimeRange& part : parts) TRY(tracks.Read(part, WorkIn::kStartsIn, part.to_ns));
  return {};
}

}  // namespace gpusonde::store
