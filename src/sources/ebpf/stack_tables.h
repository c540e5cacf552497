// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/fd.h"
#include "base/id128.h"
#include "base/result.h"
#include "sources/ebpf/interval_allocator.h"
#include "sources/ebpf/unwind_shards.h"
#include "unwind/compile.h"
#include "unwind/rule_set.h"
#include "wire/stack.h"

struct bpf_object;

namespace gpusonde::ebpf {

// What the kernel's programs know of processes and files in order to take stacks (bpf/stack.h): one set of
// maps for all programs. Tables of files are shared by all processes that map them, and stay until their room
// is needed. Not thread-safe.
class StackTables {
 public:
  // An executable mapping. Those of one process don't overlap.
  struct Mapping {
    uint64_t start = 0, end = 0;
    uint64_t file_offset = 0;   // of `start`
    std::optional<Id128> file;  // that AddFile was called for; else it is walked by frame pointers
  };

  // Errors: kPermissionDenied, kUnsupported, each saying what to do.
  static Result<StackTables> Create();

  // Makes the programs of `object`, opened and not yet loaded, use these maps.
  Status ShareWith(bpf_object* object) const;

  // Tables that are added are compiled with these rules.
  unwind::RuleSet& rules() { return rules_; }

  bool HasFile(const Id128& file) const { return files_.contains(file); }
  // Hands the file's table to the kernel. Errors: kOutOfSpace when there is no room, and no table unused for
  // which it could be made.
  Status AddFile(const Id128& file, const unwind::Table& table);

  // From now on this is what is known of the process. Errors: kOutOfSpace when too much is known of too many.
  Status SetProcess(int32_t pid, std::vector<Mapping> mappings, const gpusonde_python& python);

  // A process began as a copy of another, as the kernel's programs know already.
  void ForkProcess(int32_t parent_pid, int32_t child_pid);

  // The process has ended.
  void ForgetProcess(int32_t pid);

  // Of the kernel's memory for tables.
  size_t table_bytes() const { return shards_.bytes(); }

 private:
  struct File {
    UnwindShards::Placed placed;
    uint64_t base = 0;
    std::vector<unwind::Table::Segment> segments;
    int64_t slices = 0;  // that refer to it
    uint64_t used = 0;   // value of clock_ at the last use
  };
  // The mappings of a process, and of its forks until they change theirs.
  struct Slice {
    gpusonde_unwind_process place{};
    std::vector<Id128> files;
  };
  struct Retired {
    int64_t time_ns = 0;
    Slice slice;
  };

  StackTables(Fd processes, Fd mappings, Fd rules, UnwindShards shards)
      : processes_(std::move(processes)),
        mappings_(std::move(mappings)),
        rules_map_(std::move(rules)),
        shards_(std::move(shards)) {}

  Status UploadRules();
  Result<std::shared_ptr<Slice>> MakeSlice(const std::vector<Mapping>& mappings);
  void Release(std::shared_ptr<Slice> slice);
  void FreeRetired();
  bool EvictOldest();

  Fd processes_, mappings_, rules_map_;
  UnwindShards shards_;
  unwind::RuleSet rules_;
  size_t rules_uploaded_ = 0;
  IntervalAllocator places_{GPUSONDE_UNWIND_MAPPINGS};
  std::unordered_map<Id128, File> files_;
  std::unordered_map<int32_t, std::shared_ptr<Slice>> slices_;  // by pid
  std::deque<Retired> retired_;                                 // oldest first
  uint64_t clock_ = 0;
};

}  // namespace gpusonde::ebpf
