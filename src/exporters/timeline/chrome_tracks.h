// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/id128.h"
#include "base/json_writer.h"
#include "base/result.h"
#include "model/timeline.h"

namespace gpusonde::exporters {

// Which pid and tid events have in a Chrome trace, where processes and devices share one space of pids.
//
// As in Kineto's traces a device's pid is its ordinal and the tid of its work the stream, and others have the
// numbers of the operating system. A number that is taken (by a process of another machine, or by the same
// stream of another context) is replaced by one that no system gives. Each pid and tid is named by metadata
// events the first time that it occurs. Not thread-safe.
class ChromeTracks {
 public:
  // Receives metadata events.
  using Emit = std::function<Status(JsonWriter& event)>;

  ChromeTracks(const model::TimelineNames& names, Emit emit);

  // Of one of the devices given; without naming it.
  int64_t PidOf(const model::Device& device) const { return devices_.at(device.device).pid; }

  struct Track {
    int64_t pid = 0;
    int64_t tid = 0;
    auto operator<=>(const Track&) const = default;
  };
  // Errors: those of Emit.
  Result<int64_t> OfProcess(Id128 process);
  Result<int64_t> OfDevice(Id128 device);
  // Of a source's values that belong to neither.
  Result<int64_t> OfMachine(Id128 source);
  Result<Track> OfThread(Id128 process, int32_t tid);
  Result<Track> OfWork(const model::GpuWork& work);

 private:
  struct Owner {  // of a pid
    int64_t pid = 0;
    bool named = false;
    std::string name;
    std::string labels;  // shown beside it
    int64_t order = 0;   // of display
  };
  using Owners = std::unordered_map<Id128, Owner>;

  void AddProcess(Id128 process, int64_t pid, std::string_view name, std::string_view command);
  void AddDevice(Id128 device, int64_t ordinal, std::string_view name);
  int64_t TakePid(int64_t wanted);
  Result<int64_t> Named(Owner& owner);
  Status NameThread(const Track& track, std::string_view name);

  Emit emit_;
  Owners processes_;
  Owners devices_;
  Owners machines_;
  std::map<std::pair<Id128, int32_t>, std::string> thread_names_;
  using Stream = std::tuple<Id128, Id128, int64_t, int64_t>;  // device, process, context, stream
  std::map<Stream, Track> streams_;
  std::set<Track> named_;
  std::unordered_set<int64_t> pids_;  // that are taken
  int64_t spare_;
};

}  // namespace gpusonde::exporters
