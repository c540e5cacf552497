// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/fd.h"
#include "base/id128.h"
#include "base/result.h"
#include "sources/ebpf/interval_allocator.h"
#include "sources/ebpf/rule_pool.h"
#include "sources/ebpf/unwind_shards.h"
#include "sources/ebpf/user_shares.h"
#include "unwind/compile.h"
#include "unwind/rule_set.h"
#include "wire/stack.h"

struct bpf_object;

namespace gpusonde::ebpf {

// What the kernel's programs know of processes and files in order to take stacks (bpf/stack.h): one set of
// maps for all programs. Tables of files are shared by all processes that map them, and stay until their
// room is needed or there are kMaxFiles. Users have shares of the room (UserShares): of rules
// RulePool::kMaxPerUser, of the words of tables a half, of mappings a quarter; and three quarters of both
// for all of them. Not thread-safe.
class StackTables {
 public:
  // An executable mapping. A process's mappings don't overlap.
  struct Mapping {
    uint64_t start = 0, end = 0;
    uint64_t file_offset = 0;   // of `start`
    std::optional<Id128> file;  // with which AddFile was called; else unwound by frame pointers
  };

  // Files that no process maps go when there are so many: programs that are built and tested on a machine
  // are new ones each time, and small.
  static constexpr size_t kMaxFiles = 10'000;

  // Errors: kPermissionDenied, kUnsupported, each saying what to do.
  static Result<StackTables> Create();

  // Makes the programs of `object`, which must be opened and not yet loaded, use these maps.
  Status ShareWith(bpf_object* object) const;

  bool HasFile(const Id128& file) const { return files_.contains(file); }
  // Hands the file's table, compiled with `rules`, to the kernel, on account of the user. Errors: kOutOfSpace
  // when there is no room, or none left for this user, and no table unused for which it could be made.
  Status AddFile(const Id128& file, unwind::Table table, std::span<const unwind::Rule> rules,
                 int32_t user_id);

  // From now on this is what is known of the process: of its mappings GPUSONDE_UNWIND_MAX_PROCESS_MAPPINGS at
  // most, first those of files with tables. Errors: kOutOfSpace when too much is known of too many,
  // or of the user's.
  Status SetProcess(int32_t pid, int32_t user_id, std::vector<Mapping> mappings,
                    const gpusonde_python& python);

  // Copies a parent's registration to its forked child, as the BPF program has done already.
  void ForkProcess(int32_t parent_pid, int32_t child_pid);

  // The process has ended.
  void ForgetProcess(int32_t pid);

  size_t files() const { return files_.size(); }

  // Kernel memory used for tables.
  size_t table_bytes() const { return shards_.bytes(); }

 private:
  static constexpr uint64_t kWords = uint64_t{GPUSONDE_UNWIND_SHARDS} * GPUSONDE_UNWIND_SHARD_WORDS;

  struct File {
    UnwindShards::Placed placed;
    uint64_t base = 0;
    std::vector<unwind::Table::Segment> segments;
    std::vector<uint16_t> rules;  // their numbers
    int32_t user_id = 0;          // on whose account
    uint64_t words = 0;
    int64_t slices = 0;  // that refer to it
    uint64_t used = 0;   // value of clock_ at the last use
  };
  // The mappings of a process, and of its forks until they change theirs.
  struct Slice {
    gpusonde_unwind_process place{};
    int32_t user_id = 0;
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

  // The rest of AddFile, for a file whose words are taken.
  Status Place(File& file, unwind::Table& table, std::span<const unwind::Rule> rules);
  // Evicts files until `take` has no shortage.
  Status TakeRoom(int32_t user_id, const std::function<Shortage()>& take);
  void GiveBack(const File& file);
  Result<std::shared_ptr<Slice>> MakeSlice(const std::vector<Mapping>& mappings, int32_t user_id);
  void Release(std::shared_ptr<Slice> slice);
  void FreeRetired();
  // Evicts the file that was used longest ago, of those that no process maps and that `may_go`. False when
  // there is none.
  bool EvictOldest(const std::function<bool(const File&)>& may_go);
  // Of those with a table, among the files of one user, or of all.
  bool EvictOldestTable(std::optional<int32_t> user_id);

  Fd processes_, mappings_, rules_map_;
  UnwindShards shards_;
  RulePool rules_;
  UserShares words_{kWords / 2, kWords / 4 * 3};
  UserShares mapping_shares_{GPUSONDE_UNWIND_MAPPINGS / 4, uint64_t{GPUSONDE_UNWIND_MAPPINGS} / 4 * 3};
  IntervalAllocator places_{GPUSONDE_UNWIND_MAPPINGS};
  std::unordered_map<Id128, File> files_;
  std::unordered_map<int32_t, std::shared_ptr<Slice>> slices_;  // by pid
  std::deque<Retired> retired_;                                 // oldest first
  uint64_t clock_ = 0;
  uint64_t last_slice_ = 0;  // its id
};

}  // namespace gpusonde::ebpf
