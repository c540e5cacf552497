// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/queries/profile_assembler.h"
#include "store/queries/profile_query.h"
#include "store/queries/selection_sql.h"
#include "store/sql/time_range.h"

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

// What a thread waits for stands above its stack, as what was called last.
std::string_view WaitName(std::string_view state) {
  if (state == "io") return "[waits for I/O]";
  if (state == "lock") return "[waits for a lock]";
  if (state == "condition") return "[waits for another thread]";
  if (state == "sleep") return "[sleeps]";
  if (state == "run_queue") return "[waits for a CPU]";
  if (state == "gpu_wait") return "[waits for a GPU]";
  return "[waits]";
}

// The stacks of a profile with what their threads waited for above them, each once.
class WaitingStacks {
 public:
  explicit WaitingStacks(model::Profile& profile) : profile_(profile) {}

  int32_t StackOf(int32_t below, std::string_view state) {
    const int32_t leaf = LeafOf(WaitName(state));
    const auto [entry, is_new] =
        stacks_.try_emplace({leaf, below}, static_cast<int32_t>(profile_.stacks.size()));
    if (!is_new) return entry->second;
    std::vector<int32_t> frames = {leaf};
    if (below >= 0) {
      const std::vector<int32_t>& stack = profile_.stacks[static_cast<size_t>(below)];
      frames.insert(frames.end(), stack.begin(), stack.end());
    }
    profile_.stacks.push_back(std::move(frames));
    return entry->second;
  }

 private:
  int32_t LeafOf(std::string_view name) {
    const auto [entry, is_new] = leaves_.try_emplace(name, static_cast<int32_t>(profile_.locations.size()));
    if (is_new) {
      profile_.locations.push_back({.kind = model::FrameKind::kKernel,
                                    .lines = {{static_cast<int32_t>(profile_.functions.size()), 0}}});
      profile_.functions.push_back({.name = std::string(name), .system_name = std::string(name), .file = ""});
    }
    return entry->second;
  }

  model::Profile& profile_;
  std::map<std::string_view, int32_t> leaves_;  // of names that live as long as the program
  std::map<std::pair<int32_t, int32_t>, int32_t> stacks_;
};

}  // namespace

Result<model::Profile> ReadProfile(Store& store, const model::Selection& selection) {
  ASSIGN_OR_RETURN(const CpuTime time, CpuTimeIn(store, selection, Detail::kStacks));
  ASSIGN_OR_RETURN(ProfileAssembler assembler, ProfileAssembler::Read(store, time.parts));
  model::Profile& profile = assembler.profile();
  profile.one_second_in = time.one_second_in;
  WaitingStacks waiting(profile);
  for (const ProfileAssembler::Used& row : assembler.used()) {
    int32_t stack = assembler.StackIndex(row.stack);
    if (selection.off_cpu) stack = waiting.StackOf(stack, row.state);
    const int32_t thread = assembler.ThreadIndex(row.process, row.tid);
    profile.samples.push_back({.stack = stack,
                               .thread = thread,
                               .count = row.count,
                               .weight_ns = row.weight_ns,
                               .variance_ns2 = row.variance_ns2});
  }
  model::BoundSums(profile);
  if (selection.off_cpu) profile.type = model::ProfileType::kOffCpu;
  ASSIGN_OR_RETURN(const TimeRange range, ReadTimeRange(store, selection));
  profile.start_ns = range.from_ns;
  profile.end_ns = range.to_ns;
  ASSIGN_OR_RETURN(profile.sampling_hz, SamplingHz(store));
  return std::move(profile);
}

}  // namespace gpusonde::store
