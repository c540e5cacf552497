// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/time.h"
#include "model/helper_threads.h"
#include "model/profile.h"
#include "store/queries/profile_assembler.h"
#include "store/sql/process_sql.h"
#include "store/sql/sql_part.h"
#include "store/tracks/read_parts.h"

namespace gpusonde::store {
namespace {

// No sample stands for more time; in a damaged file one may say so.
constexpr int64_t kMaxWeightNs = kNanosPerSecond;

// CPU samples whose time lies at least partly in the range, as what follows FROM.
SqlPart SelectedSamples(const model::Selection& selection, const TimeRange& range) {
  SqlPart samples{"samples WHERE state = 'on_cpu' AND time_ns > ? AND time_ns < ?",
                  {range.from_ns, range.to_ns + kMaxWeightNs}};
  samples += AndOfProcesses(selection);
  if (selection.tid.has_value()) samples += {" AND tid = ?", {int64_t{*selection.tid}}};
  return samples;
}

// What a thread did, in a word: the innermost function of its program where that is Python, else of all.
std::string FunctionOf(const model::Profile& profile, int32_t stack) {
  const std::vector<int32_t>& frames = profile.stacks[static_cast<size_t>(stack)];
  const auto is_python = [&](int32_t location) {
    return location >= 0 &&
           profile.locations[static_cast<size_t>(location)].kind == model::FrameKind::kPython;
  };
  const auto python = std::ranges::find_if(frames, is_python);
  if (python != frames.end()) return model::FrameName(profile, *python);
  return frames.empty() ? "[unknown]" : model::FrameName(profile, frames.front());
}

// Removes the threads that profilers run inside programs.
void RemoveHelpers(ProfileAssembler& assembler, TrackBuilder& builder) {
  model::Profile& profile = assembler.profile();
  for (const ProfileAssembler::Used& used : assembler.used())
    profile.samples.push_back(
        {.stack = assembler.StackIndex(used.stack), .thread = assembler.ThreadIndex(used.process, used.tid)});
  // Those that were never seen on a CPU have a name.
  for (const auto& [process, tid] : builder.Threads()) assembler.ThreadIndex(process, tid);
  const std::vector<bool> is_helper = model::HelperThreads(profile);
  for (size_t i = 0; i < profile.threads.size(); ++i)
    if (is_helper[i]) builder.Remove(profile.threads[i].process, profile.threads[i].tid);
}

}  // namespace

Status ReadSamples(Store& store, const model::Selection& selection, bool helper_threads,
                   TrackBuilder& builder) {
  const SqlPart samples = SelectedSamples(selection, builder.grid().range);
  const SqlPart stacks{
      "(SELECT DISTINCT process, tid, stack, 'on_cpu' AS state, 1 AS count, 0 AS weight_ns, 0 AS "
      "variance_ns2 FROM " +
          samples.text + ")",
      samples.parameters};
  ASSIGN_OR_RETURN(ProfileAssembler assembler, ProfileAssembler::Read(store, {&stacks, 1}));
  std::map<Id128, int32_t> names;  // by stack
  for (const ProfileAssembler::Used& used : assembler.used())
    if (!names.contains(used.stack))
      names[used.stack] = builder.NameOf(EventKind::kSample,
                                         FunctionOf(assembler.profile(), assembler.StackIndex(used.stack)));

  const SqlPart sql{"SELECT process, tid, stack, time_ns, weight_ns FROM " + samples.text,
                    samples.parameters};
  TRY(ForEachRow(store, sql, [&](const Rows& row) {
    const auto name = names.find(row.Id(2));
    // A sample that was stored since its stacks were read.
    if (name == names.end()) return;
    // The clock ticked at the end of the time that the sample stands for.
    const int64_t end_ns = row.Int64(3);
    const int64_t weight_ns = std::clamp<int64_t>(row.Int64(4), 0, std::min(kMaxWeightNs, end_ns));
    builder.Add({TrackKind::kSamples, row.Id(0), {}, row.Int64(1)}, {end_ns - weight_ns, end_ns}, 0,
                name->second);
  }));
  if (!helper_threads) RemoveHelpers(assembler, builder);
  return {};
}

}  // namespace gpusonde::store
