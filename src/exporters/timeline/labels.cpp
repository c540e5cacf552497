// SPDX-License-Identifier: Apache-2.0
#include "exporters/timeline/labels.h"

#include <fmt/format.h>

#include <array>
#include <tuple>

#include "base/demangle.h"
#include "base/utf8.h"

namespace gpusonde::exporters {
namespace {

// Names kept demangled: a program has some thousand kernels, a hostile file as many as it has rows.
constexpr size_t kMaxNames = 20'000;

constexpr int kCorrelationBits = 32;  // CUPTI's ids
constexpr uint64_t kMaxSessions = uint64_t{1} << 21;

using Word = std::pair<std::string_view, std::string_view>;  // ours, Kineto's

template <size_t kCount>
std::string_view Kinetos(const std::array<Word, kCount>& words, std::string_view ours) {
  for (const auto& [word, kinetos] : words)
    if (word == ours) return kinetos;
  return "Unknown";
}

std::string_view CopyWord(std::string_view kind) {
  constexpr std::array kWords = {Word{"htod", "HtoD"}, Word{"dtoh", "DtoH"}, Word{"dtod", "DtoD"},
                                 Word{"ptop", "PtoP"}, Word{"htoh", "HtoH"}};
  return Kinetos(kWords, kind);
}

std::string_view MemoryWord(std::string_view memory) {
  constexpr std::array kWords = {Word{"pageable", "Pageable"}, Word{"pinned", "Pinned"},
                                 Word{"device", "Device"}, Word{"managed", "Managed"}};
  return Kinetos(kWords, memory);
}

}  // namespace

const std::string& WorkNames::Of(const model::GpuWork& work) {
  switch (work.kind) {
    case model::GpuWork::Kind::kKernel:
      break;
    case model::GpuWork::Kind::kMemcpy:
      return name_ = fmt::format("Memcpy {} ({} -> {})", CopyWord(work.copy), MemoryWord(work.source_memory),
                                 MemoryWord(work.target_memory));
    case model::GpuWork::Kind::kMemset:
      return name_ = "Memset";
  }
  if (const auto known = kernels_.find(work.name); known != kernels_.end()) return known->second;
  if (kernels_.size() == kMaxNames) kernels_.clear();
  return kernels_[work.name] = ToUtf8(Demangle(work.name));
}

bool StartsWork(const model::ThreadSpan& call) {
  if (call.kind != model::ThreadSpan::Kind::kCall || call.domain == "os") return false;
  for (const std::string_view part : {"Launch", "Memcpy", "Memset"})
    if (call.name.find(part) != std::string::npos) return true;
  return false;
}

std::optional<uint64_t> Correlations::IdOf(Id128 process, int32_t session, int64_t correlation) {
  if (correlation < 0) return std::nullopt;
  const std::tuple key(process, session, correlation >> kCorrelationBits);
  auto entry = sessions_.find(key);
  if (entry == sessions_.end()) {
    if (sessions_.size() >= kMaxSessions) return std::nullopt;
    entry = sessions_.emplace(key, sessions_.size()).first;
  }
  const int64_t low = correlation & ((int64_t{1} << kCorrelationBits) - 1);
  return entry->second << kCorrelationBits | static_cast<uint64_t>(low);
}

}  // namespace gpusonde::exporters
