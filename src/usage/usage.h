// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/time_range.h"
#include "model/device_account.h"
#include "model/selection.h"
#include "store/store.h"

// Who held the GPUs, and used or wasted them: docs/usage.md.
namespace gpusonde::usage {

// What GPU time is summed by.
enum class By : uint8_t {
  kOwner,  // the pod; without one the SLURM job, else the container, the service or the user
  kPod,
  kNamespace,
  kContainer,
  kJob,
  kService,
  kUser,
  kApplication,
  kProcess,
  kDevice,
  kHost,
  kLabel,  // of pods
};
// Of all but kLabel, whose name includes the label's: "label:team".
inline constexpr std::string_view kByNames[] = {"owner",   "pod",     "namespace", "container",
                                                "job",     "service", "user",      "application",
                                                "process", "device",  "host"};

struct SumBy {
  By by = By::kOwner;
  std::string label = {};  // its name, for kLabel
};
// "owner", "label:team".
std::string NameOf(const SumBy& by);
// Null for a name that is none.
std::optional<SumBy> FindBy(std::string_view name);

// Sums of several processes. Of texts, which are untrusted, none is longer than 256 bytes.
struct Group {
  std::string name;  // "pod ml/trainer-0" by owner, else "ml/trainer-0"; empty: those that belong to none
  std::set<Id128> processes;
  std::set<Id128> devices;
  model::HolderUse use;
  // Of the idle time, that in which a container had GPUs allocated and no process of its pod held them.
  double without_process_ns = 0;
  // NVML's own figure of the time held: the sums of its means weighted by the time they are of, and of that.
  double sampled_busy_ns = 0;
  double sampled_ns = 0;

  Group& operator+=(const Group& more);
  // 0…1; null without readings.
  std::optional<double> SampledUtilization() const;
};

// What an answer about the hosts of a server covers.
struct Coverage {
  int64_t hosts = 0;
  // Until when all hosts that still send are summed; null without any.
  std::optional<int64_t> until_ns = {};
  struct Gap {
    std::string host;
    std::string why;  // a phrase
  };
  std::vector<Gap> gaps = {};  // hosts of which something is missing, by name
};

struct Usage {
  TimeRange range;  // empty without data
  SumBy by;
  bool simulated = false;              // some of the devices are
  std::set<Id128> devices;             // those known, held or not
  std::set<std::string> labels{};      // of pods, by which it can be summed
  std::vector<Group> groups;           // falling by the GPU time that they are accountable for
  std::optional<Coverage> coverage{};  // of several hosts

  // Of all groups.
  Group Total() const;
};

// Sums up the selection's time range of a store. Errors: those of store::Query.
Result<Usage> ReadUsage(store::Store& store, const model::Selection& selection, const SumBy& by);

// The sums of several hosts over the same time range.
Usage Merge(std::vector<Usage> hosts);

// The time that a group is accountable for: its shares of the devices that it held, ns. A device that
// several hold counts once.
double AccountableNs(const model::HolderUse& use);

// The program that a process runs, as users know it: for an interpreter its script or module.
// "python3 -u /data/train.py --lr 1" is "train.py".
std::string ApplicationOf(std::string_view name, std::string_view command);

}  // namespace gpusonde::usage
