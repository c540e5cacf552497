// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "sources/nvml/library.h"

// A fake NVML for tests, with configurable answers and errors.
namespace gpusonde::nvml {

class FakeNvml {
 public:
  using Result = gpusonde_nvml_result;

  // A device's answers, by the names in `Functions`.
  struct Gpu {
    std::string uuid = "GPU-fake";
    std::string name = "Fake";
    uint64_t memory_used = 1'000'000, memory_total = 80'000'000'000;
    gpusonde_nvml_utilization utilization{50, 20};
    std::map<std::string, uint64_t> values = {
        {"clock", 1980},     {"temperature", 40}, {"pcie_throughput", 1000}, {"throttle_reasons", 4},
        {"energy", 12'345},  {"power", 300'000},  {"power_limit", 700'000},  {"pcie_generation", 5},
        {"pcie_width", 16},  {"pcie_replays", 0}, {"ecc_errors", 3},         {"temperature_threshold", 87},
        {"mig_max_count", 7}};
    // By id: GPM's metrics, and fields (NVLink).
    std::map<uint32_t, double> gpm = {{GPUSONDE_NVML_GPM_SM_UTIL, 41},
                                      {GPUSONDE_NVML_GPM_SM_OCCUPANCY, 25.5},
                                      {GPUSONDE_NVML_GPM_ANY_TENSOR_UTIL, 12},
                                      {GPUSONDE_NVML_GPM_DRAM_BW_UTIL, 33},
                                      {GPUSONDE_NVML_GPM_PCIE_RX_PER_SEC, 200}};
    bool gpm_supported = true;
    std::map<uint32_t, uint64_t> fields = {{GPUSONDE_NVML_FIELD_NVLINK_DATA_RX, 9},
                                           {GPUSONDE_NVML_FIELD_NVLINK_REPLAYS, 2}};
    std::array<uint32_t, 4> rows = {1, 2, 1, 0};  // corrected, uncorrected, pending, failure
    // A MIG instance is a Gpu behind the others with the index of its parent.
    std::optional<size_t> parent;
    std::vector<gpusonde_nvml_process> processes;
    std::vector<gpusonde_nvml_process_sample> process_samples;
    std::map<std::string, Result> fails;
  };

  // The instance behind functions().
  static FakeNvml& Get() {
    static FakeNvml fake;
    return fake;
  }
  void Reset() {
    const std::lock_guard lock(mutex_);
    gpus_.assign(1, Gpu{});
    fails_.clear();
    calls_.clear();
    slow_ms_.clear();
    stuck_.clear();
    events_.clear();
  }
  // Changes a device, or the library, under the lock.
  template <class Change>
  void Alter(size_t gpu, Change change) {
    const std::lock_guard lock(mutex_);
    change(gpus_[gpu]);
  }
  void SetGpus(std::vector<Gpu> gpus) {
    const std::lock_guard lock(mutex_);
    gpus_ = std::move(gpus);
  }
  // Makes a call fail for the library, or for every device; SUCCESS ends it.
  void Fail(const std::string& function, Result result) {
    const std::lock_guard lock(mutex_);
    fails_[function] = result;
  }
  void Slow(const std::string& function, int ms) {
    const std::lock_guard lock(mutex_);
    slow_ms_[function] = ms;
  }
  // Makes calls block until they are freed.
  void Stick(const std::string& function) {
    const std::lock_guard lock(mutex_);
    stuck_.insert(function);
  }
  void FreeAll() {
    const std::lock_guard lock(mutex_);
    stuck_.clear();
    changed_.notify_all();
  }
  void Raise(gpusonde_nvml_event event) {
    const std::lock_guard lock(mutex_);
    events_.push_back(event);
    changed_.notify_all();
  }
  // Samples that were allocated and not freed.
  int live_samples() {
    const std::lock_guard lock(mutex_);
    return live_samples_;
  }
  int calls(const std::string& function) {
    const std::lock_guard lock(mutex_);
    return calls_[function];
  }
  // At most kMaxGpus.
  static void* HandleOf(size_t gpu) { return &handles[gpu]; }

  static Functions functions() {
    Functions f;
    f.init = [] { return Get().Call("init", nullptr, [](Gpu&) {}); };
    f.shutdown = [] { return Get().Call("shutdown", nullptr, [](Gpu&) {}); };
    f.error_string = [](Result) { return "fake error"; };
    f.device_count = [](uint32_t* count) {
      return Get().Call("device_count", nullptr, [&](Gpu&) {
        *count = static_cast<uint32_t>(Get().InstancesOf(std::nullopt).size());
      });
    };
    f.device_by_index = [](uint32_t index, void** device) {
      *device = HandleOf(index);
      return Get().Call("device_by_index", *device, [](Gpu&) {});
    };
    f.name = [](void* device, char* text, uint32_t bytes) {
      return Get().Call("name", device,
                        [&](Gpu& gpu) { std::snprintf(text, bytes, "%s", gpu.name.c_str()); });
    };
    f.uuid = [](void* device, char* text, uint32_t bytes) {
      return Get().Call("uuid", device,
                        [&](Gpu& gpu) { std::snprintf(text, bytes, "%s", gpu.uuid.c_str()); });
    };
    f.memory = [](void* device, gpusonde_nvml_memory* memory) {
      return Get().Call("memory", device, [&](Gpu& gpu) {
        *memory = {gpu.memory_total, gpu.memory_total - gpu.memory_used, gpu.memory_used};
      });
    };
    f.utilization = [](void* device, gpusonde_nvml_utilization* to) {
      return Get().Call("utilization", device, [&](Gpu& gpu) { *to = gpu.utilization; });
    };
    f.clock = [](void* device, uint32_t, uint32_t* to) { return Get().Value("clock", device, to); };
    f.temperature = [](void* device, uint32_t, uint32_t* to) {
      return Get().Value("temperature", device, to);
    };
    f.temperature_threshold = [](void* device, uint32_t which, uint32_t* to) -> Result {
      if (which != GPUSONDE_NVML_THRESHOLD_SLOWDOWN) return GPUSONDE_NVML_ERROR_INVALID_ARGUMENT;
      return Get().Value("temperature_threshold", device, to);
    };
    f.pcie_throughput = [](void* device, uint32_t, uint32_t* to) {
      return Get().Value("pcie_throughput", device, to);
    };
    f.throttle_reasons = [](void* device, uint64_t* to) {
      return Get().Value("throttle_reasons", device, to);
    };
    f.energy = [](void* device, uint64_t* to) { return Get().Value("energy", device, to); };
    f.power = [](void* device, uint32_t* to) { return Get().Value("power", device, to); };
    f.power_limit = [](void* device, uint32_t* to) { return Get().Value("power_limit", device, to); };
    f.pcie_generation = [](void* device, uint32_t* to) { return Get().Value("pcie_generation", device, to); };
    f.pcie_width = [](void* device, uint32_t* to) { return Get().Value("pcie_width", device, to); };
    f.pcie_replays = [](void* device, uint32_t* to) { return Get().Value("pcie_replays", device, to); };
    f.ecc_errors = [](void* device, uint32_t, uint32_t, uint64_t* to) {
      return Get().Value("ecc_errors", device, to);
    };
    f.processes = [](void* device, uint32_t* count, gpusonde_nvml_process* to) {
      return Get().List("processes", device, &Gpu::processes, count, to);
    };
    f.process_utilization = [](void* device, gpusonde_nvml_process_sample* to, uint32_t* count, uint64_t) {
      return Get().List("process_utilization", device, &Gpu::process_samples, count, to);
    };
    f.event_set_create = [](void** set) {
      *set = &Get();
      return Get().Call("event_set_create", nullptr, [](Gpu&) {});
    };
    f.register_events = [](void* device, uint64_t, void*) {
      return Get().Call("register_events", device, [](Gpu&) {});
    };
    f.event_set_wait = [](void*, gpusonde_nvml_event* event, uint32_t timeout_ms) {
      return Get().Wait(event, timeout_ms);
    };
    f.event_set_free = [](void*) { return Get().Call("event_set_free", nullptr, [](Gpu&) {}); };
    AddNewer(f);
    return f;
  }

 private:
  // What a sample points to.
  struct Sample {
    int taken = 0;  // how many samples had been taken then; 0: none
    std::map<uint32_t, double> gpm;
  };

  // What drivers of the last years have in addition.
  static void AddNewer(Functions& f) {
    f.field_values = [](void* device, int32_t count, gpusonde_nvml_field* fields) {
      return Get().Call("field_values", device, [&](Gpu& gpu) {
        for (gpusonde_nvml_field& field : std::span(fields, static_cast<size_t>(count))) {
          const auto found = gpu.fields.find(field.field);
          field.result =
              found == gpu.fields.end() ? GPUSONDE_NVML_ERROR_NOT_SUPPORTED : GPUSONDE_NVML_SUCCESS;
          field.value_type = GPUSONDE_NVML_VALUE_UNSIGNED_LONG_LONG;
          if (found != gpu.fields.end()) field.value.unsigned_long = found->second;
        }
      });
    };
    f.remapped_rows = [](void* device, uint32_t* corrected, uint32_t* uncorrected, uint32_t* pending,
                         uint32_t* failure) {
      return Get().Call("remapped_rows", device, [&](Gpu& gpu) {
        *corrected = gpu.rows[0];
        *uncorrected = gpu.rows[1];
        *pending = gpu.rows[2];
        *failure = gpu.rows[3];
      });
    };
    f.mig_mode = [](void* device, uint32_t* current, uint32_t*) {
      return Get().Call("mig_mode", device,
                        [&](Gpu&) { *current = Get().InstancesOf(IndexOf(device)).empty() ? 0 : 1; });
    };
    f.mig_max_count = [](void* device, uint32_t* to) { return Get().Value("mig_max_count", device, to); };
    f.mig_by_index = [](void* device, uint32_t index, void** instance) -> Result {
      bool exists = false;
      const Result result = Get().Call("mig_by_index", device, [&](Gpu&) {
        const std::vector<size_t> instances = Get().InstancesOf(IndexOf(device));
        exists = index < instances.size();
        if (exists) *instance = HandleOf(instances[index]);
      });
      return result == GPUSONDE_NVML_SUCCESS && !exists ? GPUSONDE_NVML_ERROR_NOT_FOUND : result;
    };
    f.gpu_instance_id = [](void* device, uint32_t* to) { return Get().Value("gpu_instance_id", device, to); };
    f.compute_instance_id = [](void* device, uint32_t* to) {
      return Get().Value("compute_instance_id", device, to);
    };
    f.attributes = [](void* device, gpusonde_nvml_attributes* to) {
      return Get().Call("attributes", device, [&](Gpu& gpu) {
        to->multiprocessors = static_cast<uint32_t>(gpu.values["multiprocessors"]);
      });
    };
    f.gpm_support = [](void* device, gpusonde_nvml_gpm_support* support) -> Result {
      if (support->version != GPUSONDE_NVML_GPM_SUPPORT_VERSION)
        return GPUSONDE_NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
      return Get().Call("gpm_support", device,
                        [&](Gpu& gpu) { support->supported = gpu.gpm_supported ? 1 : 0; });
    };
    f.gpm_alloc = [](void** sample) {
      return Get().Call("gpm_alloc", nullptr, [&](Gpu&) {
        *sample = new Sample;
        ++Get().live_samples_;
      });
    };
    f.gpm_free = [](void* sample) {
      return Get().Call("gpm_free", nullptr, [&](Gpu&) {
        delete static_cast<Sample*>(sample);
        --Get().live_samples_;
      });
    };
    f.gpm_sample = [](void* device, void* sample) {
      return Get().Call("gpm_sample", device,
                        [&](Gpu& gpu) { *static_cast<Sample*>(sample) = {++Get().samples_taken_, gpu.gpm}; });
    };
    f.gpm_mig_sample = [](void* device, uint32_t gpu_instance, void* sample) {
      return Get().Call("gpm_mig_sample", device, [&](Gpu&) {
        for (const size_t index : Get().InstancesOf(IndexOf(device))) {
          Gpu& instance = Get().gpus_[index];
          if (instance.values["gpu_instance_id"] == gpu_instance)
            *static_cast<Sample*>(sample) = {++Get().samples_taken_, instance.gpm};
        }
      });
    };
    f.gpm_metrics = [](gpusonde_nvml_gpm_metrics* metrics) -> Result {
      const auto* from = static_cast<const Sample*>(metrics->sample1);
      const auto* to = static_cast<const Sample*>(metrics->sample2);
      if (metrics->version != GPUSONDE_NVML_GPM_METRICS_GET_VERSION)
        return GPUSONDE_NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
      if (from->taken == 0 || from->taken >= to->taken) return GPUSONDE_NVML_ERROR_INVALID_ARGUMENT;
      return Get().Call("gpm_metrics", nullptr, [&](Gpu&) {
        for (gpusonde_nvml_gpm_metric& metric : std::span(metrics->metrics).first(metrics->count)) {
          const auto found = to->gpm.find(metric.metric);
          metric.result = found == to->gpm.end() ? GPUSONDE_NVML_ERROR_NOT_SUPPORTED : GPUSONDE_NVML_SUCCESS;
          if (found != to->gpm.end()) metric.value = found->second;
        }
      });
    };
  }

  static size_t IndexOf(void* device) {
    return static_cast<size_t>(static_cast<char*>(device) - handles.data());
  }
  // The indices of the MIG instances of a device; without one those of whole devices.
  std::vector<size_t> InstancesOf(std::optional<size_t> parent) const {
    std::vector<size_t> found;
    for (size_t i = 0; i < gpus_.size(); ++i)
      if (gpus_[i].parent == parent) found.push_back(i);
    return found;
  }

  template <class Fill>
  Result Call(const std::string& function, void* device, Fill fill) {
    std::unique_lock lock(mutex_);
    ++calls_[function];
    if (const int ms = slow_ms_[function]; ms > 0) {
      lock.unlock();
      std::this_thread::sleep_for(std::chrono::milliseconds(ms));
      lock.lock();
    }
    changed_.wait(lock, [&] { return !stuck_.contains(function); });
    if (const auto failure = fails_.find(function); failure != fails_.end() && failure->second != 0)
      return failure->second;
    Gpu nothing;
    if (device == nullptr) {
      fill(nothing);
      return GPUSONDE_NVML_SUCCESS;
    }
    const size_t index = IndexOf(device);
    if (index >= gpus_.size()) return GPUSONDE_NVML_ERROR_INVALID_ARGUMENT;
    Gpu& gpu = gpus_[index];
    if (const auto failure = gpu.fails.find(function); failure != gpu.fails.end() && failure->second != 0)
      return failure->second;
    fill(gpu);
    return GPUSONDE_NVML_SUCCESS;
  }

  template <class T>
  Result Value(const std::string& function, void* device, T* to) {
    return Call(function, device, [&](Gpu& gpu) { *to = static_cast<T>(gpu.values[function]); });
  }

  template <class Item>
  Result List(const std::string& function, void* device, std::vector<Item> Gpu::* list, uint32_t* count,
              Item* to) {
    bool fits = true;
    const Result result = Call(function, device, [&](Gpu& gpu) {
      const std::vector<Item>& items = gpu.*list;
      fits = items.size() <= *count;
      for (size_t i = 0; i < items.size() && fits; ++i) to[i] = items[i];
      *count = static_cast<uint32_t>(items.size());
    });
    return result == GPUSONDE_NVML_SUCCESS && !fits ? GPUSONDE_NVML_ERROR_INSUFFICIENT_SIZE : result;
  }

  Result Wait(gpusonde_nvml_event* event, uint32_t timeout_ms) {
    std::unique_lock lock(mutex_);
    if (const auto failure = fails_.find("event_set_wait"); failure != fails_.end() && failure->second != 0)
      return failure->second;
    if (!changed_.wait_for(lock, std::chrono::milliseconds(timeout_ms), [&] { return !events_.empty(); }))
      return GPUSONDE_NVML_ERROR_TIMEOUT;
    *event = events_.front();
    events_.pop_front();
    return GPUSONDE_NVML_SUCCESS;
  }

  static constexpr size_t kMaxGpus = 64;
  static inline std::array<char, kMaxGpus> handles;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Gpu> gpus_{1};
  std::map<std::string, Result> fails_;
  std::map<std::string, int> calls_, slow_ms_;
  int live_samples_ = 0, samples_taken_ = 0;
  std::set<std::string> stuck_;
  std::deque<gpusonde_nvml_event> events_;
};

}  // namespace gpusonde::nvml
