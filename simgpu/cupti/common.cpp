// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <ctime>
#include <map>
#include <string>
#include <string_view>

#include "simgpu/cupti/cupti.h"
#include "simgpu/machine/clock.h"
#include "simgpu/machine/settings.h"

namespace simgpu::cupti {
namespace {

const ToolsTable* FindTools() {
  // Loads libcuda, as the real CUPTI does: a client may subscribe before the program's first CUDA call.
  void* driver = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (driver == nullptr) return nullptr;
  auto* get = reinterpret_cast<GetExportTable*>(::dlsym(driver, "cuGetExportTable"));
  const void* table = nullptr;
  if (get == nullptr || get(&table, kToolsTableId) != 0) return nullptr;
  const auto* tools = static_cast<const ToolsTable*>(table);
  return tools->size == sizeof(ToolsTable) ? tools : nullptr;
}

constexpr ToolCallbacks kCallbacks = {
    .api = OnApi,
    .operation = OnOperation,
    .resource = OnResource,
    .synchronized = OnSynchronized,
    .graph_trace = WantsGraphTrace,
};

// "cuptiSubscribe:39,cuptiActivityFlushAll:999@2": a function's value, and for which of its calls (without @
// for all). Parsed once; calls are counted per function.
struct Fault {
  int64_t value = 0;
  int64_t at = 0;
};

std::map<std::string, Fault, std::less<>> ParseFaults(const char* text) {
  std::map<std::string, Fault, std::less<>> faults;
  std::string_view rest = text;
  while (!rest.empty()) {
    const size_t comma = rest.find(',');
    const std::string item(rest.substr(0, comma));
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
    const size_t colon = item.find(':');
    if (colon == std::string::npos) continue;
    const size_t at = item.find('@', colon);
    faults[item.substr(0, colon)] = {
        std::strtoll(item.c_str() + colon + 1, nullptr, 10),
        at == std::string::npos ? 0 : std::strtoll(item.c_str() + at + 1, nullptr, 10)};
  }
  return faults;
}

// The value for this call of the function, if one is set.
int64_t FaultFor(const std::map<std::string, Fault, std::less<>>& faults, const char* function,
                 int64_t calls) {
  const auto found = faults.find(std::string_view(function));
  if (found == faults.end() || (found->second.at != 0 && found->second.at != calls)) return 0;
  return found->second.value;
}

}  // namespace

const Knobs& TheKnobs() {
  static const Knobs knobs = {
      .callback_ns = IntegerSetting("SIMGPU_CUPTI_CALLBACK_NS", 0, 0, 1'000'000'000),
      .activity_ns = IntegerSetting("SIMGPU_CUPTI_ACTIVITY_NS", 0, 0, 1'000'000'000),
      .flush_ns = IntegerSetting("SIMGPU_CUPTI_FLUSH_NS", 0, 0, 1'000'000'000),
      .late_us = IntegerSetting("SIMGPU_CUPTI_LATE_US", 500, 0, 10'000'000),
      .late_enable_ms = IntegerSetting("SIMGPU_CUPTI_LATE_ENABLE_MS", 0, 0, 60'000),
      .early = NumberSetting("SIMGPU_CUPTI_EARLY", 0.02, 0, 1),
      .reorder = NumberSetting("SIMGPU_CUPTI_REORDER", 0.1, 0, 1),
      .drop = NumberSetting("SIMGPU_CUPTI_DROP", 0, 0, 1),
      .zero = NumberSetting("SIMGPU_CUPTI_ZERO", 0, 0, 1),
      .stale = NumberSetting("SIMGPU_CUPTI_STALE", 0, 0, 1),
  };
  return knobs;
}

namespace {

// splitmix64 (Steele, Lea, Flood 2014) over a counter.
uint64_t NextRandom() {
  static std::atomic<uint64_t> state = static_cast<uint64_t>(IntegerSetting("SIMGPU_SEED", 1, 0, INT64_MAX));
  uint64_t z = state.fetch_add(0x9E3779B97F4A7C15ULL, std::memory_order_relaxed) + 0x9E3779B97F4A7C15ULL;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
  return z ^ (z >> 31);
}

}  // namespace

void Spin(int64_t duration_ns) {
  if (duration_ns <= 0) return;
  const int64_t until_ns = NowNs() + duration_ns;
  while (NowNs() < until_ns) {
  }
}

bool Chance(double probability) {
  if (probability <= 0) return false;
  return 0x1p-53 * static_cast<double>(NextRandom() >> 11) < probability;
}

int64_t RandomUpTo(int64_t limit) {
  return limit <= 0 ? 0 : static_cast<int64_t>(NextRandom() % (static_cast<uint64_t>(limit) + 1));
}

Result EnterCupti(const char* function) {
  static const auto failures = ParseFaults(TextSetting("SIMGPU_CUPTI_FAIL", ""));
  static const auto delays = ParseFaults(TextSetting("SIMGPU_CUPTI_DELAY", ""));
  if (failures.empty() && delays.empty()) return GPUSONDE_CUPTI_SUCCESS;
  static std::mutex mutex;
  static std::map<std::string, int64_t, std::less<>> calls;
  int64_t count = 0;
  {
    const std::lock_guard lock(mutex);
    count = ++calls[function];
  }
  const int64_t delay_ms = FaultFor(delays, function, count);
  if (delay_ms > 0) {
    const timespec delay{delay_ms / 1000, delay_ms % 1000 * 1'000'000};
    ::nanosleep(&delay, nullptr);
  }
  return static_cast<Result>(FaultFor(failures, function, count));
}

const ToolsTable* Tools() {
  static const ToolsTable* tools = FindTools();
  return tools;
}

bool KeepAttached() {
  const ToolsTable* tools = Tools();
  if (tools == nullptr) return false;
  if (AnySubscriber() || AnyKind()) return tools->attach(&kCallbacks);
  tools->detach(&kCallbacks);
  return true;
}

}  // namespace simgpu::cupti
