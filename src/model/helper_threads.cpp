// SPDX-License-Identifier: Apache-2.0
#include "model/helper_threads.h"

#include <algorithm>
#include <iterator>
#include <ranges>
#include <string_view>

namespace gpusonde::model {
namespace {

constexpr std::string_view kHelperBinaries[] = {"libgpusonde-inject.so", "libcupti.so"};
// Every thread's stack begins in these, whatever the thread is for.
constexpr std::string_view kStarters[] = {"libc.so", "libc-2", "ld-linux", "libpthread"};

bool StartsWithAny(std::string_view text, auto& prefixes) {
  return std::ranges::any_of(prefixes, [text](std::string_view prefix) { return text.starts_with(prefix); });
}

// The inject library's thread is "gpusonde", as is the recorder; the others are processes of it. Programs of
// others, and gpusonde-hpc of the package, may have names that begin so.
constexpr std::string_view kHelperNames[] = {"gpusonde", "gpusonde-files", "gpusonde-lines", "simgpu-cupti"};

bool IsHelperName(std::string_view name) {
  return std::ranges::find(kHelperNames, name) != std::end(kHelperNames);
}

// Whether the outermost binary of a stack (leaf first), C library excepted, is a profiler's.
bool BeginsInHelper(const Profile& profile, const std::vector<int32_t>& stack) {
  for (const int32_t at : stack | std::views::reverse) {
    if (at < 0) return false;
    const Profile::Location& location = profile.locations[static_cast<size_t>(at)];
    if (location.kind != FrameKind::kNative || location.binary < 0) return false;
    const std::string& name = profile.binaries[static_cast<size_t>(location.binary)].name;
    if (!StartsWithAny(name, kStarters)) return StartsWithAny(name, kHelperBinaries);
  }
  return false;
}

}  // namespace

std::vector<bool> HelperThreads(const Profile& profile) {
  std::vector<bool> is_helper(profile.threads.size());
  // GPU time is never excluded: the work that helpers launch for the program would be hidden too.
  if (profile.type == ProfileType::kGpu) return is_helper;
  for (size_t i = 0; i < is_helper.size(); ++i) is_helper[i] = IsHelperName(profile.threads[i].name);
  std::vector<bool> begins;
  for (const std::vector<int32_t>& stack : profile.stacks) begins.push_back(BeginsInHelper(profile, stack));
  for (const Profile::Sample& sample : profile.samples)
    if (sample.thread >= 0 && sample.stack >= 0 && begins[static_cast<size_t>(sample.stack)])
      is_helper[static_cast<size_t>(sample.thread)] = true;
  return is_helper;
}

}  // namespace gpusonde::model
