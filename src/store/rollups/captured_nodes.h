// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/id128.h"
#include "base/result.h"
#include "model/selection.h"
#include "store/sql/sql_part.h"

namespace gpusonde::store {

// The stacks that captured the nodes of CUDA graphs, read when the first one is wanted. Not thread-safe.
class CapturedNodes {
 public:
  // `ask` and `selection` must outlive it. `tables` is a prefix of table names: "" or a schema and a dot.
  CapturedNodes(const Ask& ask, const model::Selection& selection, std::string tables)
      : ask_(ask), selection_(selection), tables_(std::move(tables)) {}

  // The stack that captured or made the node, or the one that it is a clone of, and so on back. Sessions only
  // grow: a node is looked for in its own and older ones. Nothing if it isn't known. Errors: those of `ask`.
  Result<std::optional<Id128>> StackOf(const Id128& process, int64_t node, int64_t session);

 private:
  struct Node {
    Id128 process;
    int64_t node = 0;
    bool operator==(const Node&) const = default;
  };
  struct Hash {
    size_t operator()(const Node& node) const {
      return node.process.low ^ static_cast<uint64_t>(node.node) * 0x9E3779B97F4A7C15;
    }
  };
  using Stacks = std::vector<std::pair<int64_t, Id128>>;  // by session, the oldest first

  Status Read();

  const Ask& ask_;
  const model::Selection& selection_;
  std::string tables_;
  bool is_read_ = false;
  std::unordered_map<Node, Stacks, Hash> stacks_;
};

}  // namespace gpusonde::store
