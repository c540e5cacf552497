// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/id128.h"
#include "diagnose/actors.h"
#include "diagnose/cause_id.h"
#include "diagnose/collective_groups.h"
#include "diagnose/host_timeline.h"
#include "diagnose/situation_builder.h"

namespace gpusonde::diagnose {

struct RankContext {
  const HostTimeline& host;
  const Actors& actors;
  const std::map<Id128, LastReport>& last_reports;  // by process: the ranks' own incidents
};

// What a rank did on its host while others waited for it.
struct RankHost {
  std::optional<CauseId> cause;
  std::string sentence;  // empty: nothing is known
};

// Explains why a rank was late in [from_ns, to_ns): by its own incident if it has one with a cause; else by
// what the thread that calls NCCL did, compared with the time before.
RankHost ExplainRank(const CollectiveRank& rank, int64_t from_ns, int64_t to_ns, const RankContext& context);

// "rank 3 (python, process 412)"
std::string NameRank(const CollectiveRank& rank, const Actors& actors);

}  // namespace gpusonde::diagnose
