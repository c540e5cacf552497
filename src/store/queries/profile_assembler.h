// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/id128.h"
#include "base/result.h"
#include "model/profile.h"
#include "store/sql/sql_part.h"
#include "store/store.h"

namespace gpusonde::store {

// Builds a model::Profile from rows of ids: reads the names that the rows refer to, and adds what StackIndex
// and ThreadIndex are called for. Not thread-safe.
class ProfileAssembler {
 public:
  // A thread's time in a stack and a state.
  struct Used {
    Id128 process;
    int32_t tid = 0;
    Id128 stack;
    std::string state;  // empty: it has none
    int64_t count = 0;
    int64_t weight_ns = 0;
    double variance_ns2 = 0;
  };

  // Each part of `used` is what follows FROM: rows of process, tid, stack (null: none), state, count,
  // weight_ns and variance_ns2. Names are read after them, except those in the store's cache. Errors: those
  // of Store::Query.
  static Result<ProfileAssembler> Read(Store& store, std::span<const SqlPart> used);
  // The same for rows that have been read, in any order.
  static Result<ProfileAssembler> Read(Store& store, std::vector<Used> used);

  // The rows summed by process, tid, stack and state, ordered by these.
  const std::vector<Used>& used() const { return used_; }

  // The index of a stack of one unknown frame if the store has no such stack: in a damaged recording rows may
  // be missing.
  int32_t StackIndex(Id128 id);
  int32_t ThreadIndex(Id128 process, int32_t tid);

  // The profile so far; more may be added to it.
  model::Profile& profile() { return profile_; }

 private:
  struct ThreadKey {
    Id128 process;
    int32_t tid = 0;
    bool operator==(const ThreadKey&) const = default;
  };
  struct ThreadKeyHash {
    size_t operator()(const ThreadKey& key) const {
      return std::hash<Id128>()(key.process) ^ static_cast<size_t>(key.tid) * 0x9E3779B97F4A7C15;
    }
  };
  struct Process {
    int32_t pid = 0;
    std::string name;
    std::string command;
    int32_t parent_pid = 0;
  };
  using Indices = std::unordered_map<Id128, int32_t>;

  void SumUsed();
  Status ReadThreads(Store& store);
  Status ReadNames(Store& store);
  int32_t FunctionIndex(Id128 id);
  int32_t BinaryIndex(Id128 id);
  int32_t LocationIndex(Id128 id);

  std::vector<Used> used_;
  KeptRows<std::vector<Id128>>::Found stacks_;
  KeptRows<LocationRow>::Found locations_;
  KeptRows<model::Profile::Function>::Found functions_;
  KeptRows<model::Profile::Binary>::Found binaries_;
  std::unordered_map<Id128, Process> processes_;
  std::unordered_map<ThreadKey, std::string, ThreadKeyHash> thread_names_;

  model::Profile profile_;
  int32_t missing_stack_ = -1;  // made at its first use
  Indices stack_indices_, location_indices_, function_indices_, binary_indices_;
  std::unordered_map<ThreadKey, int32_t, ThreadKeyHash> thread_indices_;
};

}  // namespace gpusonde::store
