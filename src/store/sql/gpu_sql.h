// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "model/selection.h"
#include "store/sql/sql_part.h"
#include "store/sql/time_range.h"

// Parts of SQL statements about GPU work: kernels, copies and sets.
//
// Rows come from untrusted files. Work that ends before it starts or starts before 1970 is ignored, so that
// sums and differences of times within a row can't overflow.
namespace gpusonde::store {

// Which work belongs to a time.
enum class WorkIn {
  kStartsIn,  // starts in the range: each row belongs to exactly one of adjacent ranges
  kRunsIn,    // runs in the range, at least partly
};

// Which packs of kernels (table kernel_packs) to unpack, at some 0.1 µs a kernel.
enum class Packs {
  kAll,
  kNone,
};

// GPU work as what follows FROM: rows of process, device, session, correlation, stream, start_ns, end_ns,
// name (a kernel's is mangled, the others are "[memcpy htod]", "[memset]") and graph_node. Only the
// selection's process, device and stream; its time is `range`. `tables` goes before the names of tables: ""
// or a schema and a dot. `also` is a further condition (" AND …") on these columns but the name.
SqlPart GpuWork(const model::Selection& selection, const TimeRange& range, WorkIn which,
                Packs packs = Packs::kAll, const std::string& tables = "", const SqlPart& also = {});

// When all work that runs in the range ran, as what follows FROM: rows of device, start_ns and end_ns. `also`
// is a further condition (" AND …") on start_ns and end_ns, which has to hold for a span of time if it holds
// for a part of it: packs that don't meet it aren't unpacked. Other columns of packs aren't read: that took
// 40 % of the time.
SqlPart GpuTimes(const TimeRange& range, const SqlPart& also);

// A condition on packs that may contain such work: all kernels of a pack start within its second.
SqlPart PacksIn(const model::Selection& selection, const TimeRange& range, WorkIn which);

// Packs that may contain such work, as what follows FROM: rows of process, device, start_ns, end_ns and
// count, of which a damaged file may say anything.
SqlPart PackSpans(const model::Selection& selection, const TimeRange& range, WorkIn which,
                  const std::string& tables = "");

// Time spans of that work without unpacking: rows of process, device, start_ns, end_ns and count, one for
// each kernel, copy or set with a row of its own and one for each pack. A pack may also contain kernels
// outside the range that start within the same second; its count is what the file says.
SqlPart GpuWorkSpans(const model::Selection& selection, const TimeRange& range, WorkIn which,
                     const std::string& tables = "");

// What follows FROM: rows of start_ns and count that start in the range.
using CountedRows = std::function<SqlPart(const TimeRange& range)>;

// Adjacent slices of time that cover the range. Each has at most `rows` of the counted rows, so that an
// answer about it fits into memory; a slice of `grain_ns` or less may have more. Slices begin at multiples of
// that: by default at whole seconds, because a pack's kernels start anywhere in its second.
Result<std::vector<TimeRange>> ReadSlicesOf(const Ask& ask, const CountedRows& counted,
                                            const TimeRange& range, int64_t rows,
                                            int64_t grain_ns = kNanosPerSecond);
// The same of the selection's GPU work, packed kernels included.
Result<std::vector<TimeRange>> ReadSlices(const Ask& ask, const model::Selection& selection,
                                          const TimeRange& range, int64_t rows,
                                          const std::string& tables = "");

// The range extended by ten minutes on either side, in which its sessions are searched; a scan of all rows
// would grow with the store.
TimeRange SessionReach(const TimeRange& range);

// Sessions as what follows FROM: rows of process, session, start_ns and end_ns, of the selection's process
// only. A session without an end in table gpu_sessions lasts until the next one of its process, or the
// process's end. A session without a row there lasts from the first to the last of its work, waits and calls
// in SessionReach(range).
SqlPart GpuSessions(const model::Selection& selection, const TimeRange& range);

}  // namespace gpusonde::store
