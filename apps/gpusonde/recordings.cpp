// SPDX-License-Identifier: Apache-2.0
#include "recordings.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <string_view>

#include "base/fd.h"
#include "importers/trace.h"
#include "store/recordings/recording.h"
#include "store/rollups/recorded_sums.h"

namespace gpusonde::app {
namespace {

std::string_view Describe(importers::TraceFormat format) {
  constexpr std::string_view kNames[] = {"an Nsight Systems export", "an nvprof database",
                                         "a PyTorch profiler (Kineto) trace", "an Nsight Compute CSV",
                                         "a recording"};
  return kNames[static_cast<size_t>(format)];
}

}  // namespace

Result<std::unique_ptr<store::Store>> OpenRecordings(const std::vector<std::string>& files) {
  Result<std::unique_ptr<store::Store>> opened = store::OpenRecordings(files);
  if (opened.has_value()) return store::UseRecordedSums(*std::move(opened), files.size());
  if (opened.error().code == ErrorCode::kNotFound) return opened;
  for (const std::string& file : files) {
    const auto trace = importers::OpenTrace(file, {});
    if (trace.has_value() && (*trace)->info().format != importers::TraceFormat::kSonde)
      return Fail(ErrorCode::kUnsupported,
                  fmt::format("{} is {}, not a recording; `gpusonde analyze {}` reads it", file,
                              Describe((*trace)->info().format), file));
  }
  return opened;
}

bool IsRecording(const std::string& file) {
  constexpr std::string_view kMagic = "DUCK";
  constexpr off_t kMagicOffset = 8;
  const Result<Fd> opened = Open(file, O_RDONLY | O_NONBLOCK);  // a FIFO without a writer would block
  std::array<char, kMagic.size()> begin{};
  return opened.has_value() && ::pread(opened->get(), begin.data(), begin.size(), kMagicOffset) > 0 &&
         std::string_view(begin.data(), begin.size()) == kMagic;
}

}  // namespace gpusonde::app
