// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "base/counted.h"
#include "base/fd.h"
#include "base/regular_file.h"
#include "doctor/probes.h"
#include "sources/cupti/gpu_events.h"
#include "sources/cupti/inject_library.h"
#include "sources/proc/process.h"

namespace gpusonde::doctor {
namespace {

// Libraries of tools that use CUPTI, which serves one tool at a time, for as long as they are loaded.
// (PyTorch loads CUPTI too, but uses it only while its profiler runs.)
constexpr std::array kTools = {
    std::pair<std::string_view, std::string_view>{"libToolsInjection64", "Nsight Systems"},
    std::pair<std::string_view, std::string_view>{"libcuda-injection", "Nsight Compute"},
    std::pair<std::string_view, std::string_view>{"libparcagpu", "parcagpu"},
};

struct Seen {
  int cuda = 0, unreadable = 0;
  std::vector<std::string> older, tools, unprofiled;
};

// Whether a file that the process has mapped is our library. Its user may have put anything in its place: a
// pipe, say, whose opening would wait for a writer.
bool IsOurs(int32_t pid, const std::string& path, const std::string& ours) {
  // A library that was replaced while loaded is "libgpusonde-inject.so (deleted)".
  if (!cupti::LooksLikeInjectLibrary(path)) return false;
  const Result<Fd> file = OpenRegular(fmt::format("/proc/{}/root{}", pid, path));
  return file.has_value() && ReadRegular(*file, ours.size() + 1).value_or("") == ours;
}

// `ours` is the content of our library; empty if there is none.
void Look(int32_t pid, const std::string& ours, Seen& seen) {
  const Result<std::vector<proc::MappedFile>> files = proc::ReadExecutableMappings(pid);
  if (!files.has_value()) {
    if (files.error().code == ErrorCode::kPermissionDenied) ++seen.unreadable;
    return;
  }
  if (!proc::MapsFile(*files, "libcuda.so")) return;
  ++seen.cuda;
  const Result<proc::ProcessInfo> info = proc::ReadProcess(pid);
  const std::string who = fmt::format("{} ({})", pid, info.has_value() ? info->name : "");
  for (const auto& [library, tool] : kTools)
    if (proc::MapsFile(*files, library)) seen.tools.push_back(fmt::format("{} has {} in it", who, tool));
  for (const proc::MappedFile& file : *files) {
    if (!file.name().starts_with(cupti::kLibraryName) || IsOurs(pid, file.path, ours)) continue;
    seen.older.push_back(who);
    break;
  }
  if (cupti::UsesCudaWithoutInjection(pid, *files)) seen.unprofiled.push_back(who);
}

std::string Join(const std::vector<std::string>& all) {
  constexpr size_t kShown = 5;
  const std::vector<std::string> shown(all.begin(),
                                       all.begin() + static_cast<ptrdiff_t>(std::min(kShown, all.size())));
  return fmt::format("{}{}", fmt::join(shown, ", "),
                     all.size() > kShown ? fmt::format(" and {} more", all.size() - kShown) : "");
}

}  // namespace

// Whether running CUDA programs can be profiled.
Finding ProbeGpuProcesses(const Settings&) {
  const std::optional<std::string> library = cupti::FindInjectLibrary();
  const std::string ours = library.has_value() ? ReadFile(*library).value_or(std::string()) : std::string();
  Seen seen;
  for (const int32_t pid : proc::ListProcesses()) Look(pid, ours, seen);
  const std::string unreadable = seen.unreadable == 0 ? ""
                                                      : fmt::format(" ({} of other users can't be inspected)",
                                                                    Counted(seen.unreadable, "process"));
  if (!seen.older.empty())
    return Fails(fmt::format("another version of libgpusonde-inject.so is loaded in {}{}", Join(seen.older),
                             unreadable),
                 "restart these programs: gpusonde only works with the library of its own version");
  if (!seen.tools.empty())
    return Fails(fmt::format("CUPTI serves one tool at a time: {}{}", Join(seen.tools), unreadable),
                 "stop the other tool; its program's GPU work is not profiled until then");
  const std::string unprofiled =
      seen.unprofiled.empty()
          ? ""
          : fmt::format("; started without CUDA_INJECTION64_PATH, so that their GPU work isn't profiled: {}",
                        Join(seen.unprofiled));
  if (seen.cuda == 0) return Works("no CUDA program runs now" + unreadable);
  return Works(fmt::format("CUDA programs that run now: {}, none with another tool in it{}{}", seen.cuda,
                           unprofiled, unreadable));
}

}  // namespace gpusonde::doctor
