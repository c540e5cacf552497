// SPDX-License-Identifier: Apache-2.0
#include "analyze/scale/run_offer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <random>
#include <utility>

#include "base/fd.h"

namespace gpusonde::analyze {

pid_t RunOffer::ThisProcess() { return ::getpid(); }

uint32_t RunOffer::FileOf(const std::shared_ptr<TemporaryFile>& file) {
  const auto known = std::ranges::find(files_, file);
  const auto index = static_cast<uint32_t>(known - files_.begin());
  if (known != files_.end()) return index;
  files_.push_back(file);
  std::random_device random;
  Mark mark{.fd = file->fd()};
  for (uint64_t& number : mark.random) number = uint64_t{random()} << 32 | random();
  const Result<uint64_t> offset = file->Append(std::as_bytes(std::span(mark.random)));
  if (!offset.has_value()) process_ = kNobody;
  mark.offset = offset.value_or(0);
  marks_.push_back(mark);
  return index;
}

uint32_t RunOffer::NumberOf(const std::shared_ptr<const Renumbering>& change) {
  if (change == nullptr) return kNoChange;
  const auto known = std::ranges::find(changes_, change);
  const auto index = static_cast<uint32_t>(known - changes_.begin());
  if (known == changes_.end()) changes_.push_back(change);
  return index;
}

std::optional<RunOffer::Files> RunOffer::Open(size_t max_files) const {
  if (process_ == kNobody || marks_.size() > max_files) return std::nullopt;
  Files files;
  for (const Mark& mark : marks_) {
    // On another machine it may be a pipe or a terminal.
    constexpr int kFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
    Fd fd(::open(fmt::format("/proc/{}/fd/{}", process_, mark.fd).c_str(), kFlags));
    if (!fd.valid()) return std::nullopt;
    auto file = std::make_shared<TemporaryFile>(std::move(fd));
    std::array<uint64_t, 2> random{};
    if (!file->Read(mark.offset, std::as_writable_bytes(std::span(random))).has_value() ||
        random != mark.random)
      return std::nullopt;
    files.push_back(std::move(file));
  }
  return files;
}

}  // namespace gpusonde::analyze
