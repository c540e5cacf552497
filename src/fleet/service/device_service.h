// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "fleet/histogram.h"
#include "fleet/roles/device.h"
#include "fleet/roles/message.h"
#include "fleet/service/board_client.h"
#include "fleet/service/description.h"
#include "fleet/service/keys.h"
#include "fleet/service/schedule.h"
#include "fleet/service/state_file.h"

namespace gpusonde::fleet {

// What a GPU did in an epoch: its application, and a row for each group of characteristics. Secret.
struct Work {
  Finding finding;
  std::vector<Row> rows;  // by group
};

// A device's reporter: enrols it once, then sends a report for each epoch. Its state is durable before
// anything that follows from it leaves the process. Not thread-safe.
class DeviceService {
 public:
  // What the device did from one Unix time in ms to another. Errors: there is no report of that epoch.
  using Observe = std::function<Result<Work>(int64_t from_ms, int64_t to_ms)>;

  // Errors: kInvalidArgument if the ticket is of another fleet; those of StateFile.
  static Result<DeviceService> Open(Description description, Ticket ticket, const std::string& folder);

  // Does what is due at this Unix time in ms. Call it every second or so. Errors: those of BoardClient,
  // StateFile and `observe`; what failed is tried again by the next call while there is time.
  Status Step(BoardClient& board, const Observe& observe, int64_t now_ms);

  uint64_t device() const { return ticket_.device; }
  bool is_enrolled() const { return device_.has_value() && enrolment_.empty(); }
  // The newest epoch whose report the aggregator has, and what it said of it.
  struct Reported {
    uint32_t epoch = 0;
    std::string verdict;
  };
  const std::optional<Reported>& last_reported() const { return last_reported_; }

 private:
  DeviceService(Description description, Ticket ticket, StateFile file);

  Status Load(privacy::ByteReader& in);
  Status Save() const;
  SigningKey MakeSigningKey() const { return SigningKey(privacy::KeyBytes(ticket_.seed.values())); }
  Status Enrol(BoardClient& board, uint32_t first_epoch);
  Status MakeEnrolment(BoardClient& board, uint32_t first_epoch);
  int64_t MomentOf(uint32_t epoch) const;
  Status Report(BoardClient& board, const Observe& observe, uint32_t epoch, int64_t now_ms);
  Status MakeReport(BoardClient& board, const Observe& observe, uint32_t epoch);
  Status Send(BoardClient& board, uint32_t epoch);

  Description description_;
  FleetId id_;
  Schedule schedule_;
  Ticket ticket_;
  StateFile file_;
  std::optional<Reported> last_reported_;

  // What is saved.
  std::optional<Device> device_;  // once it has keys with all decryptors
  uint32_t first_epoch_ = 0;
  Bytes enrolment_;  // to be sent, until the aggregator has it
};

}  // namespace gpusonde::fleet
