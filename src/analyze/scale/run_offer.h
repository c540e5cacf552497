// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "analyze/records.h"
#include "analyze/sorted_runs.h"
#include "analyze/temporary_file.h"

// Ranks of one machine read the runs of each other's temporary files where they are: to read, send and write
// them again took a tenth of the CPU time of two ranks.
namespace gpusonde::analyze {

enum class RecordKind : uint8_t { kGpu, kCall, kSync };

// Runs in temporary files of a process, for another one, which may be on another machine or may not be
// allowed to read them.
class RunOffer {
 public:
  // The records of one process of one trace.
  struct Place {
    uint64_t trace = 0;
    uint64_t process = 0;
    RecordKind kind = RecordKind::kGpu;

    template <class Archive>
    void Transfer(Archive& archive) {
      archive(trace);
      archive(process);
      archive(kind);
      archive.Require(kind <= RecordKind::kSync);
    }
  };
  // A run in one of the files, or in the memory of its process.
  static constexpr uint32_t kInMemory = std::numeric_limits<uint32_t>::max();
  static constexpr uint32_t kNoChange = std::numeric_limits<uint32_t>::max();
  struct Offered {
    Place place;
    uint32_t file = kInMemory;
    uint32_t change = kNoChange;
    uint64_t offset = 0;
    uint64_t bytes = 0;
    uint64_t count = 0;

    template <class Archive>
    void Transfer(Archive& archive) {
      archive(place);
      archive(file);
      archive(change);
      archive(offset);
      archive(bytes);
      archive(count);
    }
  };
  using Files = std::vector<std::shared_ptr<TemporaryFile>>;

  // Adds packed runs. If a file can't be marked, the offer becomes one that no one can accept.
  template <class Record>
  void Add(const Place& place, std::span<const Run<Record, Renumbering>> runs) {
    for (const Run<Record, Renumbering>& run : runs)
      runs_.push_back({.place = place,
                       .file = run.file != nullptr ? FileOf(run.file) : kInMemory,
                       .change = NumberOf(run.change),
                       .offset = run.offset,
                       .bytes = run.bytes,
                       .count = run.count});
  }

  std::span<const Offered> runs() const { return runs_; }
  // The files of a process on this machine, if all could be opened, and if there are at most so many.
  std::optional<Files> Open(size_t max_files) const;
  // What is to be applied to the records of a run; null: nothing.
  std::shared_ptr<const Renumbering> ChangeOf(const Offered& run) const {
    return run.change == kNoChange ? nullptr : changes_[run.change];
  }

  template <class Archive>
  void Transfer(Archive& archive) {
    archive(process_);
    archive(marks_);
    uint64_t changes = changes_.size();
    archive(changes);
    for (uint64_t i = 0; i < changes && IsGood(archive); ++i) {
      Renumbering change;
      if constexpr (!Archive::kReads) change = *changes_[i];
      archive(change.names);
      archive(change.ranks);
      if constexpr (Archive::kReads)
        changes_.push_back(std::make_shared<const Renumbering>(std::move(change)));
    }
    archive(runs_);
    for (const Offered& run : runs_)
      archive.Require((run.file == kInMemory || run.file < marks_.size()) &&
                      (run.change == kNoChange || run.change < changes_.size()));
  }

 private:
  static constexpr pid_t kNobody = -1;

  // Random numbers at a place in a file: a number of a process and of a descriptor may mean another file on
  // another machine.
  struct Mark {
    int32_t fd = -1;
    uint64_t offset = 0;
    std::array<uint64_t, 2> random{};

    template <class Archive>
    void Transfer(Archive& archive) {
      archive(fd);
      archive(offset);
      for (uint64_t& number : random) archive(number);
    }
  };

  template <class Archive>
  static bool IsGood(const Archive& archive) {
    if constexpr (Archive::kReads) return archive.ok();
    return true;
  }
  static pid_t ThisProcess();
  uint32_t FileOf(const std::shared_ptr<TemporaryFile>& file);
  uint32_t NumberOf(const std::shared_ptr<const Renumbering>& change);

  pid_t process_ = ThisProcess();
  std::vector<Mark> marks_;  // by file
  std::vector<std::shared_ptr<const Renumbering>> changes_;
  std::vector<Offered> runs_;
  Files files_;  // of the process that offers
};

}  // namespace gpusonde::analyze
