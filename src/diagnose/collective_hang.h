// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "diagnose/collective_groups.h"

namespace gpusonde::diagnose {

// A collective that some ranks have been in for long while others have not called it, or have not begun it.
struct CollectiveHang {
  std::string communicator, name;
  std::string operation;
  int64_t sequence = 0;
  int64_t since_ns = 0;  // since when the first rank has waited
  int32_t ranks = 0;     // of the communicator; those on this machine if NCCL doesn't say
  std::vector<CollectiveRank> waiting;
  std::vector<CollectiveRank> missing;     // have not called it, and wait in no other
  std::vector<CollectiveRank> gpu_behind;  // called it, but their GPU has not begun it, while others' have
  int32_t elsewhere = 0;                   // ranks of which nothing is known here
};

// The oldest collective of a group in which a rank has waited for at least `hung_ns`.
std::optional<CollectiveHang> FindHang(const std::string& communicator, const CollectiveGroup& group,
                                       int64_t now_ns, int64_t hung_ns);

// That of each group, oldest first. A rank that is missing in one because it waits in another is not blamed,
// unless all are.
std::vector<CollectiveHang> FindHangs(const CollectiveGroups& groups, int64_t now_ns, int64_t hung_ns);

}  // namespace gpusonde::diagnose
