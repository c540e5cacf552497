// SPDX-License-Identifier: Apache-2.0
#include "sources/nvml/xid_watcher.h"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <system_error>
#include <thread>
#include <utility>

#include "base/time.h"
#include "sources/nvml/poller.h"

namespace gpusonde::nvml {
namespace {

// NVML can't interrupt a wait, so Stop may take this long. With it and one round a second, all NVML threads
// together take 0.011 % of two cores (bench/nvml_bench.py).
constexpr uint32_t kWaitMs = 200;
// NVIDIA documents codes below 200; 999 is "unknown".
constexpr uint64_t kMaxCode = 100'000;

}  // namespace

XidWatcher::XidWatcher(const Library& library, const std::vector<Device>& devices, std::vector<size_t> places,
                       Hub& hub)
    : library_(library), hub_(hub) {
  const Functions& f = library.functions();
  const auto can_not = [&](const std::string& what, gpusonde_nvml_result result) {
    PollResult polled;
    polled.notices.push_back({false, fmt::format("{}: {}", what, library.Explain(result))});
    hub.Publish(std::move(polled));
  };
  if (f.event_set_create == nullptr || f.register_events == nullptr || f.event_set_wait == nullptr ||
      f.event_set_free == nullptr) {
    can_not("XIDs are not reported", GPUSONDE_NVML_ERROR_FUNCTION_NOT_FOUND);
    return;
  }
  if (const auto result = f.event_set_create(&set_); result != GPUSONDE_NVML_SUCCESS) {
    set_ = nullptr;
    can_not("XIDs are not reported", result);
    return;
  }
  for (size_t i = 0; i < devices.size(); ++i) {
    if (devices[i].mig.has_value()) continue;  // the driver reports them for the GPU
    const auto result = f.register_events(devices[i].handle, GPUSONDE_NVML_EVENT_XID, set_);
    if (result == GPUSONDE_NVML_SUCCESS)
      watched_.push_back({devices[i].handle, places[i]});
    else
      can_not(fmt::format("{}: XIDs are not reported", Describe(devices[i])), result);
  }
  if (watched_.empty()) return;
  try {
    thread_ = std::thread([this] { Run(); });
  } catch (const std::system_error& error) {
    PollResult polled;
    polled.notices.push_back(
        {true, fmt::format("XIDs are not reported: can't start a thread: {}", error.what())});
    hub.Publish(std::move(polled));
  }
}

XidWatcher::~XidWatcher() {
  stopping_ = true;
  if (thread_.joinable()) thread_.join();
  if (set_ != nullptr) library_.functions().event_set_free(set_);
}

void XidWatcher::Run() {
  ::pthread_setname_np(::pthread_self(), "nvml-xid");
  gpusonde_nvml_result reported = GPUSONDE_NVML_SUCCESS;
  while (!stopping_) {
    gpusonde_nvml_event event{};
    const auto result = library_.functions().event_set_wait(set_, &event, kWaitMs);
    const int64_t now_ns = MonotonicNow();
    if (result == GPUSONDE_NVML_ERROR_TIMEOUT) continue;
    PollResult polled;
    if (result == GPUSONDE_NVML_SUCCESS) {
      const auto device = std::ranges::find(watched_, event.device, &Watched::handle);
      if (event.type != GPUSONDE_NVML_EVENT_XID || event.data > kMaxCode || device == watched_.end())
        polled.drops.Add(model::DropReason::kGpuReadingsAbsurd);
      else
        polled.readings.push_back(
            {now_ns, device->place, 0, model::Metric::kGpuXid, static_cast<double>(event.data)});
    } else {
      polled.drops.Add(model::DropReason::kGpuReadingsFailed);
      if (std::exchange(reported, result) != result)
        polled.notices.push_back(
            {true, fmt::format("waiting for XIDs failed: {}", library_.Explain(result))});
    }
    hub_.Publish(std::move(polled));
    // A failing wait returns at once.
    if (result != GPUSONDE_NVML_SUCCESS && !hub_.Sleep(kWaitMs * kNanosPerMilli)) return;
  }
}

}  // namespace gpusonde::nvml
