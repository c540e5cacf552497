// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace gpusonde::fleet {

// Which GPU each device of a reporter, that is each ticket, reports about. A ticket keeps its GPU for good,
// whatever GPUs come and go beside it: its privacy budget is that GPU's. In a file of the reporter's state
// folder. Not thread-safe.
class GpuTickets {
 public:
  // `devices` are those of the tickets at hand; what the file has of others is kept. Errors: kCorrupt;
  // kTooNew; those of the file system.
  static Result<GpuTickets> Open(const std::string& folder, std::vector<uint64_t> devices);

  // Gives the GPUs without a device the devices without a GPU, in the order of UUIDs and of tickets. Durable
  // on return. Errors: those of the file system, after which nothing has changed.
  Status Assign(std::vector<std::string> gpus);

  // The UUID of a device's GPU; null: it has none yet.
  const std::string* GpuOf(uint64_t device) const;

 private:
  GpuTickets(std::string path, std::vector<uint64_t> devices)
      : path_(std::move(path)), devices_(std::move(devices)) {}

  std::string path_;
  std::vector<uint64_t> devices_;
  std::map<uint64_t, std::string> gpus_;  // by device
};

}  // namespace gpusonde::fleet
