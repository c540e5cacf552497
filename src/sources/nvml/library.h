// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "wire/nvidia/nvml.h"

namespace gpusonde::nvml {

// The functions of NVML that we use; null where the driver's library lacks one, as older ones do.
struct Functions {
  gpusonde_nvml_plain_fn* init = nullptr;
  gpusonde_nvml_plain_fn* shutdown = nullptr;
  gpusonde_nvml_error_string_fn* error_string = nullptr;
  gpusonde_nvml_system_text_fn* driver_version = nullptr;
  gpusonde_nvml_count_fn* device_count = nullptr;
  gpusonde_nvml_by_index_fn* device_by_index = nullptr;
  gpusonde_nvml_device_text_fn* name = nullptr;
  gpusonde_nvml_device_text_fn* uuid = nullptr;
  gpusonde_nvml_pci_info_fn* pci_info = nullptr;
  gpusonde_nvml_memory_fn* memory = nullptr;
  gpusonde_nvml_memory_v2_fn* memory_v2 = nullptr;
  gpusonde_nvml_utilization_fn* utilization = nullptr;
  gpusonde_nvml_device_which_u32_fn* clock = nullptr;
  gpusonde_nvml_device_which_u32_fn* temperature = nullptr;
  gpusonde_nvml_device_which_u32_fn* temperature_threshold = nullptr;
  gpusonde_nvml_device_which_u32_fn* pcie_throughput = nullptr;
  gpusonde_nvml_device_u64_fn* event_reasons = nullptr;
  gpusonde_nvml_device_u64_fn* throttle_reasons = nullptr;  // the name of event_reasons before driver 535
  gpusonde_nvml_device_u64_fn* energy = nullptr;
  gpusonde_nvml_device_u32_fn* power = nullptr;
  gpusonde_nvml_device_u32_fn* power_limit = nullptr;
  gpusonde_nvml_device_u32_fn* pcie_generation = nullptr;
  gpusonde_nvml_device_u32_fn* pcie_width = nullptr;
  gpusonde_nvml_device_u32_fn* pcie_replays = nullptr;
  gpusonde_nvml_total_ecc_fn* ecc_errors = nullptr;
  gpusonde_nvml_processes_fn* processes = nullptr;
  gpusonde_nvml_process_utilization_fn* process_utilization = nullptr;
  gpusonde_nvml_event_set_create_fn* event_set_create = nullptr;
  gpusonde_nvml_register_events_fn* register_events = nullptr;
  gpusonde_nvml_event_set_wait_fn* event_set_wait = nullptr;
  gpusonde_nvml_event_set_free_fn* event_set_free = nullptr;
  gpusonde_nvml_field_values_fn* field_values = nullptr;
  gpusonde_nvml_remapped_rows_fn* remapped_rows = nullptr;
  gpusonde_nvml_mig_mode_fn* mig_mode = nullptr;
  gpusonde_nvml_device_u32_fn* mig_max_count = nullptr;
  gpusonde_nvml_mig_by_index_fn* mig_by_index = nullptr;
  gpusonde_nvml_device_u32_fn* gpu_instance_id = nullptr;
  gpusonde_nvml_device_u32_fn* compute_instance_id = nullptr;
  gpusonde_nvml_attributes_fn* attributes = nullptr;
  gpusonde_nvml_gpm_support_fn* gpm_support = nullptr;
  gpusonde_nvml_gpm_alloc_fn* gpm_alloc = nullptr;
  gpusonde_nvml_gpm_free_fn* gpm_free = nullptr;
  gpusonde_nvml_gpm_sample_fn* gpm_sample = nullptr;
  gpusonde_nvml_gpm_mig_sample_fn* gpm_mig_sample = nullptr;
  gpusonde_nvml_gpm_metrics_fn* gpm_metrics = nullptr;
};

// NVIDIA's management library, opened at run time. Thread-safe, as NVML itself is.
class Library {
 public:
  // Errors: kNotFound when there is no such library (no NVIDIA driver); kUnsupported when it lacks functions
  // that every version since 2012 has.
  static Result<Library> Open(const char* name = "libnvidia-ml.so.1");

  // For tests: with the given functions.
  explicit Library(const Functions& functions) : functions_(functions) {}

  const Functions& functions() const { return functions_; }
  const std::string& path() const { return path_; }  // as the loader found it

  // NVML's description of an error, with its number: "Driver Not Loaded (9)".
  std::string Explain(gpusonde_nvml_result result) const;

  Library(Library&& other) noexcept
      : handle_(std::exchange(other.handle_, nullptr)),
        path_(std::move(other.path_)),
        functions_(other.functions_) {}
  Library& operator=(Library&&) = delete;
  ~Library();

 private:
  Library(void* handle, std::string path);

  void* handle_ = nullptr;
  std::string path_;
  Functions functions_;
};

// What a MIG instance is a part of.
struct MigPlace {
  void* parent = nullptr;   // the handle of its GPU
  std::string parent_uuid;  // "GPU-…"
  uint32_t gpu_instance = 0;
  uint32_t compute_instance = 0;
};

// A GPU's properties according to NVML, or those of a MIG instance.
struct Device {
  void* handle = nullptr;       // valid until nvmlShutdown
  int32_t index = 0;            // on this host, in the order of PCI addresses; of an instance that of its GPU
  std::string uuid;             // "GPU-…" or "MIG-…"
  std::string name;             // of an instance "… MIG 1g.10gb (instance 3/0)": unique on its GPU
  std::string pci_bus;          // "0000:81:00.0"; empty when not known
  int64_t memory_bytes = 0;     // 0 when not known
  int32_t sm_count = 0;         // of an instance; 0 when not known
  std::optional<MigPlace> mig;  // of an instance
};

// Lists the devices of an initialised NVML, each followed by its MIG instances. A device or instance without
// a UUID (lost, or not permitted) is omitted, and a sentence about it is added to `problems`. Errors:
// kUnavailable with NVML's reason.
Result<std::vector<Device>> ListDevices(const Library& library, std::vector<std::string>& problems);

}  // namespace gpusonde::nvml
