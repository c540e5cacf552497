// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace gpusonde::analyze {

// A rank is a process on a device that did GPU work; a trace may hold several.
struct RankKey {
  int64_t process = 0;
  int32_t device = 0;

  auto operator<=>(const RankKey&) const = default;

  template <class Archive>
  void Transfer(Archive& archive) {
    archive(process);
    archive(device);
  }
};

// Numbers the ranks and processes of a trace in order of first use. Not thread-safe.
class RankTable {
 public:
  // Empty once there are 65,535: no real trace has as many, and records keep 16 bits.
  std::optional<uint16_t> Add(const RankKey& rank) {
    const uint16_t recent = recent_ranks_[PlaceOf(rank)];
    if (recent < ranks_.size() && ranks_[recent] == rank) return recent;
    return Find(rank);
  }
  std::optional<uint16_t> AddProcess(int64_t process) {
    const uint16_t recent = recent_processes_[static_cast<uint64_t>(process) % kRecent];
    if (recent < processes_.size() && processes_[recent] == process) return recent;
    return FindProcess(process);
  }

  // In the order of their numbers.
  template <class Archive>
  void Transfer(Archive& archive) {
    std::vector<int64_t> processes = processes_;
    std::vector<RankKey> ranks = ranks_;
    archive(processes);
    archive(ranks);
    if constexpr (Archive::kReads) {
      *this = RankTable();
      for (const int64_t process : processes) AddProcess(process);
      archive.Require(processes_.size() == processes.size());  // else one was there twice
      for (const RankKey& rank : ranks) Add(rank);
      archive.Require(processes_.size() == processes.size() && ranks_.size() == ranks.size());
    }
  }

  const std::vector<RankKey>& ranks() const { return ranks_; }
  const std::vector<int64_t>& processes() const { return processes_; }
  // The number of a rank's process.
  uint16_t ProcessOf(uint16_t rank) const { return process_of_[rank]; }

 private:
  static constexpr size_t kRecent = 64;

  // Find without the cache.
  std::optional<uint16_t> Find(const RankKey& rank);
  std::optional<uint16_t> FindProcess(int64_t process);
  static size_t PlaceOf(const RankKey& rank) {
    return static_cast<uint64_t>(rank.process + 7 * int64_t{rank.device}) % kRecent;
  }

  std::vector<RankKey> ranks_;
  std::vector<uint16_t> process_of_;  // as ranks_
  std::vector<int64_t> processes_;
  std::map<RankKey, uint16_t> rank_ids_;
  std::map<int64_t, uint16_t> process_ids_;
  // A cache of recent look-ups, by a few bits of the key: events of several ranks alternate.
  std::array<uint16_t, kRecent> recent_ranks_{};
  std::array<uint16_t, kRecent> recent_processes_{};
};

}  // namespace gpusonde::analyze
