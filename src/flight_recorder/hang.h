// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "flight_recorder/dump.h"

namespace gpusonde::flight_recorder {

// A rank's part in an operation that hasn't ended on all ranks.
struct Part {
  int64_t rank = 0;
  const Entry* call = nullptr;  // null: it didn't call the operation, or its ring no longer holds the call
};

// The oldest operation of a process group, or between two of its ranks, that hasn't ended everywhere. Each
// rank is in one of the lists, in ascending order; if its call differs, it is in `different` as well.
struct Pending {
  Group group;
  bool point_to_point = false;
  bool ranks_known = true;  // a dump says which ranks the group has; else they are those that used it
  int64_t sequence = 0;
  SharedText operation;       // what most ranks called: "all_reduce"
  std::vector<Part> waiting;  // called it, and wait
  std::vector<Part> completed;
  std::vector<Part> missing;  // have a dump, and didn't call it
  std::vector<Part> no_dump;
  std::vector<Part> different;  // called something else, or with other sizes
};

// Why a rank is believed to keep others waiting.
enum class Why : uint8_t {
  kNotCalled,  // it has not called the operation, and waits in no other
  kNoDump,     // it left no dump: it ended, or hangs outside of Python
  kDifferent,  // it called another operation, or with other sizes or types
  kGpuBehind,  // it has called it, but its GPU hasn't begun it, as the others' have
  kDeadlock,   // it waits in one operation for ranks that wait for it in another
};
std::string_view Name(Why why);

struct Suspect {
  int64_t rank = 0;
  Why why = Why::kNotCalled;
  size_t pending = 0;                // index in Hang::pending: the operation that others wait in
  std::optional<size_t> waits_in;    // index in Hang::pending; of kDeadlock
  const Entry* last_call = nullptr;  // the newest call of the rank; null without a dump or without calls
};

// A rank that came last in most collectives of a group.
struct Straggler {
  int64_t rank = 0;
  SharedText group, description;
  int64_t collectives = 0;  // whose duration is known on all ranks
  int64_t last = 0;         // in how many of them it came last
  double waited_ms = 0;     // how long the others waited for it in these, mean
};

struct Hang {
  std::vector<Pending> pending;       // collectives, then sends and receives; at most one a group or pair
  std::vector<Suspect> suspects;      // by rank; empty if nothing is pending, or all ranks are in it
  std::vector<Straggler> stragglers;  // most waiting first
  int64_t timed = 0;                  // collectives whose duration is known on all ranks
};

// Finds the operations that ranks wait in, the ranks that they wait for, and who comes late otherwise. A rank
// that is missing in one operation because it waits in another is followed there. Entries that a dump's ring
// no longer holds are taken as completed. Refers to entries of `dumps`. Errors: kInvalidArgument if two dumps
// are of the same rank, or one is of a rank that is not in a group whose operations it has.
Result<Hang> FindHang(std::span<const Dump> dumps);

}  // namespace gpusonde::flight_recorder
