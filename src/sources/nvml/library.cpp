// SPDX-License-Identifier: Apache-2.0
#include "sources/nvml/library.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>

#include <algorithm>
#include <array>

#include "base/utf8.h"

namespace gpusonde::nvml {
namespace {

// More devices than any machine has; a larger count is invalid.
constexpr uint32_t kMaxDevices = 256;
// More MIG instances than any device can be divided into: 7 today.
constexpr uint32_t kMaxInstances = 64;
constexpr uint64_t kMaxMemoryBytes = uint64_t{1} << 50;
constexpr uint32_t kMaxMultiprocessors = 1'000'000;

template <class Function>
void Find(void* handle, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(::dlsym(handle, name));
}

// Text in a buffer that the library may not have terminated.
template <size_t N>
std::string TextOf(const std::array<char, N>& text) {
  return ToUtf8(std::string(text.begin(), std::ranges::find(text, '\0')));
}

template <size_t N>
std::string Ask(gpusonde_nvml_device_text_fn* function, void* device) {
  std::array<char, N> text{};
  if (function == nullptr || function(device, text.data(), N) != GPUSONDE_NVML_SUCCESS) return {};
  return TextOf(text);
}

std::string PciBusOf(const Functions& functions, void* device) {
  gpusonde_nvml_pci_info info{};
  if (functions.pci_info == nullptr || functions.pci_info(device, &info) != GPUSONDE_NVML_SUCCESS) return {};
  // In CUDA's format, with a domain of four digits; NVML's newer field has eight.
  return TextOf(std::to_array(info.bus_id_legacy));
}

int64_t MemoryOf(const Functions& functions, void* device) {
  gpusonde_nvml_memory memory{};
  if (functions.memory == nullptr || functions.memory(device, &memory) != GPUSONDE_NVML_SUCCESS) return 0;
  return memory.total <= kMaxMemoryBytes ? static_cast<int64_t>(memory.total) : 0;
}

// An id of a MIG instance; 0, the only one that a whole GPU's instance has, where the driver doesn't say.
uint32_t IdOf(gpusonde_nvml_device_u32_fn* function, void* instance) {
  uint32_t id = 0;
  return function != nullptr && function(instance, &id) == GPUSONDE_NVML_SUCCESS ? id : 0;
}

Device DescribeInstance(const Functions& f, void* handle, const Device& parent) {
  Device instance{.handle = handle, .index = parent.index};
  instance.uuid = Ask<GPUSONDE_NVML_UUID_BYTES>(f.uuid, handle);
  instance.mig = MigPlace{.parent = parent.handle,
                          .parent_uuid = parent.uuid,
                          .gpu_instance = IdOf(f.gpu_instance_id, handle),
                          .compute_instance = IdOf(f.compute_instance_id, handle)};
  std::string name = Ask<GPUSONDE_NVML_NAME_BYTES>(f.name, handle);
  if (!name.contains(" MIG ")) name = parent.name + " MIG";
  instance.name =
      fmt::format("{} (instance {}/{})", name, instance.mig->gpu_instance, instance.mig->compute_instance);
  instance.pci_bus = parent.pci_bus;
  instance.memory_bytes = MemoryOf(f, handle);
  gpusonde_nvml_attributes attributes{};
  if (f.attributes != nullptr && f.attributes(handle, &attributes) == GPUSONDE_NVML_SUCCESS &&
      attributes.multiprocessors <= kMaxMultiprocessors)
    instance.sm_count = static_cast<int32_t>(attributes.multiprocessors);
  return instance;
}

// Adds the MIG instances of the last of `devices`, if it is divided into such.
void AddInstances(const Library& library, std::vector<Device>& devices, std::vector<std::string>& problems) {
  const Functions& f = library.functions();
  if (f.mig_mode == nullptr || f.mig_max_count == nullptr || f.mig_by_index == nullptr) return;
  const Device parent = devices.back();
  uint32_t current = GPUSONDE_NVML_MIG_DISABLED, pending = 0, count = 0;
  // Most devices don't have MIG: that is no problem.
  if (f.mig_mode(parent.handle, &current, &pending) != GPUSONDE_NVML_SUCCESS ||
      current != GPUSONDE_NVML_MIG_ENABLED)
    return;
  if (const auto result = f.mig_max_count(parent.handle, &count); result != GPUSONDE_NVML_SUCCESS) {
    problems.push_back(
        fmt::format("the MIG instances of GPU {} are not read: {}", parent.index, library.Explain(result)));
    return;
  }
  for (uint32_t index = 0; index < std::min(count, kMaxInstances); ++index) {
    void* handle = nullptr;
    const auto result = f.mig_by_index(parent.handle, index, &handle);
    if (result == GPUSONDE_NVML_ERROR_NOT_FOUND) continue;  // less than the most that it can be divided into
    Device instance;
    if (result == GPUSONDE_NVML_SUCCESS) instance = DescribeInstance(f, handle, parent);
    if (instance.uuid.empty())
      problems.push_back(
          fmt::format("MIG instance {} of GPU {} is not read: {}", index, parent.index,
                      result == GPUSONDE_NVML_SUCCESS ? "it has no UUID" : library.Explain(result)));
    else
      devices.push_back(std::move(instance));
  }
}

}  // namespace

Library::Library(void* handle, std::string path) : handle_(handle), path_(std::move(path)) {
  Functions& f = functions_;
  Find(handle, "nvmlInit_v2", f.init);
  Find(handle, "nvmlShutdown", f.shutdown);
  Find(handle, "nvmlErrorString", f.error_string);
  Find(handle, "nvmlSystemGetDriverVersion", f.driver_version);
  Find(handle, "nvmlDeviceGetCount_v2", f.device_count);
  Find(handle, "nvmlDeviceGetHandleByIndex_v2", f.device_by_index);
  Find(handle, "nvmlDeviceGetName", f.name);
  Find(handle, "nvmlDeviceGetUUID", f.uuid);
  Find(handle, "nvmlDeviceGetPciInfo_v3", f.pci_info);
  Find(handle, "nvmlDeviceGetMemoryInfo", f.memory);
  Find(handle, "nvmlDeviceGetMemoryInfo_v2", f.memory_v2);
  Find(handle, "nvmlDeviceGetUtilizationRates", f.utilization);
  Find(handle, "nvmlDeviceGetClockInfo", f.clock);
  Find(handle, "nvmlDeviceGetTemperature", f.temperature);
  Find(handle, "nvmlDeviceGetTemperatureThreshold", f.temperature_threshold);
  Find(handle, "nvmlDeviceGetPcieThroughput", f.pcie_throughput);
  Find(handle, "nvmlDeviceGetCurrentClocksEventReasons", f.event_reasons);
  Find(handle, "nvmlDeviceGetCurrentClocksThrottleReasons", f.throttle_reasons);
  Find(handle, "nvmlDeviceGetTotalEnergyConsumption", f.energy);
  Find(handle, "nvmlDeviceGetPowerUsage", f.power);
  Find(handle, "nvmlDeviceGetEnforcedPowerLimit", f.power_limit);
  Find(handle, "nvmlDeviceGetCurrPcieLinkGeneration", f.pcie_generation);
  Find(handle, "nvmlDeviceGetCurrPcieLinkWidth", f.pcie_width);
  Find(handle, "nvmlDeviceGetPcieReplayCounter", f.pcie_replays);
  Find(handle, "nvmlDeviceGetTotalEccErrors", f.ecc_errors);
  Find(handle, "nvmlDeviceGetComputeRunningProcesses_v3", f.processes);
  Find(handle, "nvmlDeviceGetProcessUtilization", f.process_utilization);
  Find(handle, "nvmlEventSetCreate", f.event_set_create);
  Find(handle, "nvmlDeviceRegisterEvents", f.register_events);
  Find(handle, "nvmlEventSetWait_v2", f.event_set_wait);
  Find(handle, "nvmlEventSetFree", f.event_set_free);
  Find(handle, "nvmlDeviceGetFieldValues", f.field_values);
  Find(handle, "nvmlDeviceGetRemappedRows", f.remapped_rows);
  Find(handle, "nvmlDeviceGetMigMode", f.mig_mode);
  Find(handle, "nvmlDeviceGetMaxMigDeviceCount", f.mig_max_count);
  Find(handle, "nvmlDeviceGetMigDeviceHandleByIndex", f.mig_by_index);
  Find(handle, "nvmlDeviceGetGpuInstanceId", f.gpu_instance_id);
  Find(handle, "nvmlDeviceGetComputeInstanceId", f.compute_instance_id);
  Find(handle, "nvmlDeviceGetAttributes_v2", f.attributes);
  Find(handle, "nvmlGpmQueryDeviceSupport", f.gpm_support);
  Find(handle, "nvmlGpmSampleAlloc", f.gpm_alloc);
  Find(handle, "nvmlGpmSampleFree", f.gpm_free);
  Find(handle, "nvmlGpmSampleGet", f.gpm_sample);
  Find(handle, "nvmlGpmMigSampleGet", f.gpm_mig_sample);
  Find(handle, "nvmlGpmMetricsGet", f.gpm_metrics);
}

Library::~Library() {
  if (handle_ != nullptr) ::dlclose(handle_);
}

Result<Library> Library::Open(const char* name) {
  void* handle = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return Fail(ErrorCode::kNotFound, ::dlerror());
  const link_map* map = nullptr;
  std::string path = ::dlinfo(handle, RTLD_DI_LINKMAP, static_cast<void*>(&map)) == 0 ? map->l_name : name;
  Library library(handle, std::move(path));
  const Functions& f = library.functions();
  if (f.init == nullptr || f.shutdown == nullptr || f.device_count == nullptr ||
      f.device_by_index == nullptr || f.uuid == nullptr)
    return Fail(ErrorCode::kUnsupported,
                fmt::format("{} is not NVIDIA's management library (NVML), or too old", library.path()));
  return library;
}

std::string Library::Explain(gpusonde_nvml_result result) const {
  const char* text = functions_.error_string == nullptr ? nullptr : functions_.error_string(result);
  return fmt::format("{} ({})", text == nullptr ? "error" : ToUtf8(text), result);
}

Result<std::vector<Device>> ListDevices(const Library& library, std::vector<std::string>& problems) {
  const Functions& f = library.functions();
  uint32_t count = 0;
  if (const auto result = f.device_count(&count); result != GPUSONDE_NVML_SUCCESS)
    return Fail(ErrorCode::kUnavailable,
                fmt::format("NVML can't count the GPUs: {}", library.Explain(result)));
  if (count > kMaxDevices)
    return Fail(ErrorCode::kUnavailable, fmt::format("NVML reports {} GPUs, an invalid number", count));
  std::vector<Device> devices;
  for (uint32_t index = 0; index < count; ++index) {
    Device device{.index = static_cast<int32_t>(index)};
    const auto result = f.device_by_index(index, &device.handle);
    if (result == GPUSONDE_NVML_SUCCESS) device.uuid = Ask<GPUSONDE_NVML_UUID_BYTES>(f.uuid, device.handle);
    if (device.uuid.empty()) {
      problems.push_back(
          fmt::format("GPU {} is not read: {}", index,
                      result == GPUSONDE_NVML_SUCCESS ? "it has no UUID" : library.Explain(result)));
      continue;
    }
    device.name = Ask<GPUSONDE_NVML_NAME_BYTES>(f.name, device.handle);
    device.pci_bus = PciBusOf(f, device.handle);
    device.memory_bytes = MemoryOf(f, device.handle);
    devices.push_back(std::move(device));
    AddInstances(library, devices, problems);
  }
  return devices;
}

}  // namespace gpusonde::nvml
