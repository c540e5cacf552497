// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/profile.h"

namespace gpusonde::server {

// The merged call tree of a profile, by columns: the response of GET /api/v1/flamegraph (docs/api.md).
struct FlameTree {
  // One entry per function that a node names; all columns are equally long.
  struct Functions {
    std::vector<int32_t> name;    // into strings
    std::vector<int32_t> binary;  // into binaries; -1 when it is in none
    // Names of model::FrameKind; "process" and "thread" of the frames that stand for one.
    std::vector<std::string_view> kind;
    std::vector<int32_t> file;  // into strings; 0, the empty text, when unknown
    std::vector<int32_t> line;  // the function's first; 0 when unknown
    // 1 for functions that explain nothing to a user (server/internal_functions.h), else 0.
    std::vector<int32_t> internal;
  };
  // In pre-order: a node, then its children's subtrees, siblings by total falling, then by function name.
  // Node 0 is the root: no function, no parent (-1), the total of all.
  struct Nodes {
    std::vector<int32_t> function;
    std::vector<int32_t> parent;
    std::vector<int64_t> self_ns;   // time in the function's own frames
    std::vector<int64_t> total_ns;  // and in what they called
    // Half the width of the 95 % interval of total_ns; empty for CPU time, 0 where it is exact.
    std::vector<int64_t> interval_ns;
  };
  // What `min_total_ns` left out.
  struct Omitted {
    int64_t nodes = 0;
    int64_t total_ns = 0;  // time missing from self_ns: Σ self + this = the root's total
  };

  // Threads of profilers inside the program (model/helper_threads.h), which are not in the tree.
  struct Hidden {
    int64_t threads = 0;
    int64_t total_ns = 0;
  };

  model::ProfileType type = model::ProfileType::kCpu;
  int64_t samples = 0;        // of GPU time: kernels, copies and sets
  int64_t one_second_in = 1;  // model::Profile::one_second_in
  std::vector<std::string> strings;
  std::vector<model::Profile::Binary> binaries;
  Functions functions;
  Nodes nodes;
  Omitted omitted;
  Hidden hidden;
};

struct FlameTreeOptions {
  int64_t min_total_ns = 0;
  bool roots = false;           // a process and a thread of it as the first two frames of each stack
  bool helper_threads = false;  // include the threads of profilers
};

// Merges the profile's stacks from the root on. Frames are the same when they are the same function (see
// FrameFunctions); inlined functions are frames of their own; a stack without frames is one `[unknown]`.
// Nodes with a total below `min_total_ns` are left out with all below them. What the frames of processes and
// threads are is in tree_roots.h. The result doesn't depend on the order of anything in `profile`.
//
// Linear in the number of frames and free of recursion, whatever their depth. Weights below 0 count as 0 and
// sums stop at the largest int64: they come from files that anyone may have written.
FlameTree BuildFlameTree(const model::Profile& profile, const FlameTreeOptions& options = {});

}  // namespace gpusonde::server
