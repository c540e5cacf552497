// SPDX-License-Identifier: Apache-2.0
#include "fleet/simulator/world.h"

#include <algorithm>
#include <cmath>

#include "fleet/simulator/seeds.h"

namespace gpusonde::fleet {
namespace {

constexpr double kMinHours = 1.0 / 60;

}  // namespace

World::World(const Habits& habits, uint64_t devices, privacy::Random random)
    : habits_(habits), random_(std::move(random)), devices_(devices) {
  double sum = 0;
  for (uint32_t rank = 1; rank <= habits.known; ++rank)
    popularity_.push_back(sum += std::pow(rank, -habits.zipf));
  for (uint64_t device = 0; device < devices; ++device) {
    if (DrawUnit(random_) < habits.load)
      Start(device, 0);
    else
      Stop(device, 0);
  }
}

uint32_t World::DrawApplication() {
  if (habits_.unknown > 0 && DrawUnit(random_) < habits_.unknown_share)
    return habits_.known + static_cast<uint32_t>(random_.Below(habits_.unknown));
  const double where = DrawUnit(random_) * popularity_.back();
  const auto found = std::ranges::upper_bound(popularity_, where);
  return static_cast<uint32_t>(std::min<int64_t>(found - popularity_.begin(), habits_.known - 1));
}

void World::Start(uint64_t device, double time) {
  State& state = devices_[device];
  state.running = DrawApplication();
  state.since = time;
  events_to_come_.push({time + DrawExponential(habits_.job_hours, random_), device, state.generation});
}

void World::Stop(uint64_t device, double time) {
  State& state = devices_[device];
  state.running.reset();
  const double idle_hours = habits_.job_hours * (1 - habits_.load) / habits_.load;
  events_to_come_.push({time + DrawExponential(idle_hours, random_), device, state.generation});
}

void World::Account(State& state, double end) {
  const double hours = end - state.since;
  busy_hours_ += hours;
  state.since = end;
  if (hours < std::max(state.main_hours, kMinHours)) return;
  state.main = state.running;
  state.main_hours = hours;
}

void World::PassHour() {
  busy_hours_ = 0;
  for (State& state : devices_) {
    state.main.reset();
    state.main_hours = 0;
  }
  const double end = now_ + 1;
  while (events_to_come_.top().time < end) {
    const Event event = events_to_come_.top();
    events_to_come_.pop();
    State& state = devices_[event.device];
    if (event.generation != state.generation) continue;
    ++events_;
    if (state.running.has_value()) {
      Account(state, event.time);
      Stop(event.device, event.time);
    } else {
      Start(event.device, event.time);
    }
  }
  for (State& state : devices_)
    if (state.running.has_value()) Account(state, end);
  busy_share_ = busy_hours_ / static_cast<double>(devices_.size());
  now_ = end;
}

void World::Replace(uint64_t device) {
  ++devices_[device].generation;
  Stop(device, now_);
}

}  // namespace gpusonde::fleet
