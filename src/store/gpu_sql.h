// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/selection.h"
#include "store/selection_sql.h"
#include "store/store.h"
#include "store/time_range.h"

// Parts of statements about what GPUs did: kernels, copies and sets together are "work".
//
// Rows come from files that anyone may have written. Work that ends before it starts or starts before 1970
// is no work; with that, sums and differences of times within a row can't overflow.
namespace gpusonde::store {

// Which work belongs to a time.
enum class WorkIn {
  kStartsIn,  // what starts in it: each row belongs to one of several times side by side
  kRunsIn,    // what runs in it, if only for a part
};

// Which packs of kernels (table kernel_packs) to unpack; a statement that does takes some 0.1 µs a kernel.
enum class Packs {
  kAll,
  kGraphs,  // those of kernels of graphs; the others are for SumPacks
  kNone,
};

// Work as what follows FROM: rows of process, device, session, correlation, stream, start_ns, end_ns, name
// (a kernel's is mangled, the others are "[memcpy htod]", "[memset]") and graph_node. Only the selection's
// process, device and stream; its time is `range`. `tables` goes before the names of tables: "" or a schema
// and a dot.
SqlPart GpuWork(const model::Selection& selection, const TimeRange& range, WorkIn which,
                Packs packs = Packs::kAll, const std::string& tables = "");

// A condition on packs that holds for all that may hold such work: all kernels of a pack start within its
// second.
SqlPart PacksIn(const model::Selection& selection, const TimeRange& range, WorkIn which);

// Where that work lies, without unpacking any: rows of process, device, start_ns, end_ns and count, one for
// each kernel, copy or set with a row of its own and one for each pack. A pack may hold others as well, that
// start within a second.
SqlPart GpuWorkSpans(const model::Selection& selection, const TimeRange& range, WorkIn which,
                     const std::string& tables = "");

// Queries a store, or a connection of one.
using Ask = std::function<Result<std::unique_ptr<Rows>>(const SqlPart& sql)>;
Ask Asking(Store& store);

// Adjacent slices of time that cover the range. Each has at most `rows` rows of the selection's work, packed
// kernels included, so that its answer fits into memory; a slice of a second or less may have more.
Result<std::vector<TimeRange>> ReadSlices(const Ask& ask, const model::Selection& selection,
                                          const TimeRange& range, int64_t rows,
                                          const std::string& tables = "");

// Ten minutes more on either side: how far from a time its sessions are looked for. A scan of everything
// would grow with the store.
TimeRange SessionReach(const TimeRange& range);

// Sessions as what follows FROM: rows of process, session, start_ns and end_ns, of the selection's process
// only. A session lasts as long as table gpu_sessions says; if its end was not told, until the next one of
// its process, or the process's end. Those of a process that has no row there are known from the first to the
// last of their work, waits and calls in SessionReach(range), and no more.
SqlPart GpuSessions(const model::Selection& selection, const TimeRange& range);

// The rows of `samples` (what follows FROM; it has time_ns) at moments at which the GPU was idle, as what
// follows FROM; see model::Selection::while_gpu_idle.
SqlPart WhileGpuIdle(const SqlPart& samples, const model::Selection& selection);

}  // namespace gpusonde::store
