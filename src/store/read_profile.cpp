// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <utility>

#include "store/profile_assembler.h"
#include "store/profile_query.h"
#include "store/selection_sql.h"
#include "store/time_range.h"

namespace gpusonde::store {
namespace {

// The frequency of all sources that sampled; 0 when they differ.
Result<double> SamplingHz(Store& store) {
  ASSIGN_OR_RETURN(
      const std::unique_ptr<Rows> rows,
      store.Query("SELECT CASE WHEN min(sampling_hz) = max(sampling_hz) THEN min(sampling_hz) ELSE 0 END "
                  "FROM sources"));
  ASSIGN_OR_RETURN(const bool any, rows->Next());
  return any ? rows->Float64(0) : 0;
}

}  // namespace

Result<model::Profile> ReadProfile(Store& store, const model::Selection& selection) {
  ASSIGN_OR_RETURN(ProfileAssembler assembler,
                   ProfileAssembler::Read(store, CpuTimeIn(store, selection, Detail::kStacks)));
  model::Profile& profile = assembler.profile();
  for (const ProfileAssembler::Used& row : assembler.used()) {
    const int32_t stack = assembler.StackIndex(row.stack);
    const int32_t thread = assembler.ThreadIndex(row.process, row.tid);
    profile.samples.push_back(
        {.stack = stack, .thread = thread, .count = row.count, .weight_ns = row.weight_ns});
  }
  ASSIGN_OR_RETURN(const TimeRange range, ReadTimeRange(store, selection));
  profile.start_ns = range.from_ns;
  profile.end_ns = range.to_ns;
  ASSIGN_OR_RETURN(profile.sampling_hz, SamplingHz(store));
  return std::move(profile);
}

}  // namespace gpusonde::store
