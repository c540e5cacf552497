// SPDX-License-Identifier: Apache-2.0
#include "sources/nvml/hub.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace gpusonde::nvml {
namespace {

// Three minutes of eight devices at 10 Hz.
constexpr size_t kMaxReadings = 150'000;
constexpr size_t kMaxNotices = 1'000;

}  // namespace

std::vector<size_t> Hub::PlacesOf(std::span<const Device> found) {
  const std::lock_guard lock(mutex_);
  std::vector<size_t> places;
  for (const Device& device : found) {
    const auto known = std::ranges::find(devices_, device.uuid, &Device::uuid);
    places.push_back(static_cast<size_t>(known - devices_.begin()));
    if (known == devices_.end()) devices_.push_back(device);
  }
  return places;
}

std::vector<Device> Hub::devices() const {
  const std::lock_guard lock(mutex_);
  return devices_;
}

void Hub::Publish(PollResult polled) {
  const std::lock_guard lock(mutex_);
  result_.drops.Merge(polled.drops);
  const size_t room = kMaxReadings - result_.readings.size();
  const size_t kept = std::min(room, polled.readings.size());
  result_.readings.insert(result_.readings.end(), polled.readings.begin(),
                          polled.readings.begin() + static_cast<ptrdiff_t>(kept));
  result_.drops.Add(model::DropReason::kGpuReadingsLost, static_cast<int64_t>(polled.readings.size() - kept));
  for (Notice& notice : polled.notices)
    if (result_.notices.size() < kMaxNotices) result_.notices.push_back(std::move(notice));
}

PollResult Hub::Drain() {
  const std::lock_guard lock(mutex_);
  return std::exchange(result_, {});
}

void Hub::Stop() {
  const std::lock_guard lock(mutex_);
  stopping_ = true;
  changed_.notify_all();
}

bool Hub::stopping() const {
  const std::lock_guard lock(mutex_);
  return stopping_;
}

bool Hub::Sleep(int64_t duration_ns) {
  std::unique_lock lock(mutex_);
  return !changed_.wait_for(lock, std::chrono::nanoseconds(duration_ns), [this] { return stopping_; });
}

void Hub::MarkDone() {
  const std::lock_guard lock(mutex_);
  done_ = true;
  changed_.notify_all();
}

bool Hub::WaitUntilDone(int64_t longest_ns) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, std::chrono::nanoseconds(longest_ns), [this] { return done_; });
}

}  // namespace gpusonde::nvml
