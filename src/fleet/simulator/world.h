// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <queue>
#include <utility>
#include <vector>

#include "fleet/privacy/random.h"

namespace gpusonde::fleet {

// What the devices of a simulated fleet do: jobs come, run for a time and go, as discrete events in hours. A
// device is idle or runs one application. Jobs last exponentially long; idle times likewise, so that the
// share of busy devices is `load` at any time from the beginning on. Applications follow Zipf's law, but for
// the share that the catalog doesn't know, which are equally likely. The same for the same randomness. Not
// thread-safe.
class World {
 public:
  struct Habits {
    double load = 0.1;
    double job_hours = 4;
    double zipf = 1;
    uint32_t known = 61;
    uint32_t unknown = 0;
    double unknown_share = 0;
  };

  // 0 < load < 1, known > 0.
  World(const Habits& habits, uint64_t devices, privacy::Random random);

  // Goes on to the end of the next hour.
  void PassHour();

  // What a device ran for the longest part of the last hour; nothing when that is less than a minute.
  std::optional<uint32_t> MainApplication(uint64_t device) const { return devices_[device].main; }
  // The share of the last hour's device time in which there was a job.
  double busy_share() const { return busy_share_; }
  uint64_t events() const { return events_; }

  // Another device in the place of this one: it begins idle.
  void Replace(uint64_t device);

 private:
  struct State {
    std::optional<uint32_t> running;
    double since = 0;
    uint32_t generation = 0;  // of the device: events of one that is gone are passed over
    std::optional<uint32_t> main;
    double main_hours = 0;
  };
  struct Event {
    double time;
    uint64_t device;
    uint32_t generation;
    bool operator>(const Event& other) const {
      return std::pair(time, device) > std::pair(other.time, other.device);
    }
  };

  uint32_t DrawApplication();
  void Start(uint64_t device, double time);
  void Stop(uint64_t device, double time);
  void Account(State& state, double end);

  Habits habits_;
  privacy::Random random_;
  std::vector<double> popularity_;  // summed up, of the known
  std::vector<State> devices_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_to_come_;
  double now_ = 0;
  double busy_hours_ = 0;
  double busy_share_ = 0;
  uint64_t events_ = 0;
};

}  // namespace gpusonde::fleet
