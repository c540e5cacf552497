// SPDX-License-Identifier: Apache-2.0
#include "sources/proc/allowed_cpus.h"

#include <fmt/format.h>
#include <sched.h>

#include <array>
#include <bit>
#include <charconv>
#include <cstddef>
#include <filesystem>
#include <string>
#include <system_error>

namespace gpusonde::proc {
namespace {

constexpr int kMaxThreads = 256;
// CONFIG_NR_CPUS is at most this on x86-64; a smaller mask is refused by kernels that have more CPUs.
constexpr size_t kMaxCpus = 8192;

using Mask = std::array<unsigned long, kMaxCpus / (8 * sizeof(unsigned long))>;

}  // namespace

std::optional<int> CountAllowedCpus(int32_t pid) {
  Mask allowed{};
  int threads = 0;
  std::error_code failed;
  std::filesystem::directory_iterator task(fmt::format("/proc/{}/task", pid), failed);
  for (; !failed && task != std::filesystem::directory_iterator() && threads < kMaxThreads;
       task.increment(failed)) {
    const std::string name = task->path().filename();
    int32_t tid = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), tid).ec != std::errc()) continue;
    Mask mask{};
    // The thread may have ended meanwhile.
    if (::sched_getaffinity(tid, sizeof mask, reinterpret_cast<cpu_set_t*>(mask.data())) != 0) continue;
    ++threads;
    for (size_t i = 0; i < mask.size(); ++i) allowed[i] |= mask[i];
  }
  if (threads == 0) return std::nullopt;
  int cpus = 0;
  for (const unsigned long word : allowed) cpus += std::popcount(word);
  return cpus;
}

}  // namespace gpusonde::proc
