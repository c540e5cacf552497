// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <map>
#include <string>
#include <vector>

#include "base/time.h"
#include "doctor/in_child.h"
#include "doctor/probes.h"
#include "doctor/shared_library.h"
#include "sources/nvml/gpm.h"
#include "sources/nvml/library.h"
#include "sources/nvml/poller.h"

namespace gpusonde::doctor {
namespace {

// The first character of the child's answer is one of these.
constexpr char kNvmlFine = '+';
constexpr char kNoDriver = 'd';
constexpr char kMismatch = 'm';
constexpr char kNvmlFailed = '-';

std::string_view WhatToDo(char answer) {
  switch (answer) {
    case kNoDriver:
      return "load the driver (`modprobe nvidia`); in a container, start it with the GPU";
    case kMismatch:
      return "the driver was updated while it ran: restart the machine, or the kernel modules";
    default:
      return "`nvidia-smi` has to work first; in a container ask for the `utility` capability";
  }
}

std::string DriverVersion(const nvml::Functions& functions) {
  std::array<char, GPUSONDE_NVML_VERSION_BYTES> text{};
  if (functions.driver_version == nullptr ||
      functions.driver_version(text.data(), text.size() - 1) != GPUSONDE_NVML_SUCCESS)
    return "of an unknown version";
  return text.data();
}

// Whether what the SMs do is read, which "GPU utilization" doesn't say; one line for all devices alike.
void DescribeGpm(const nvml::Library& library, const std::vector<nvml::Device>& devices,
                 std::vector<std::string>& remarks) {
  std::map<std::string, std::vector<std::string>> devices_by_reason;
  for (const nvml::Device& device : devices)
    devices_by_reason[nvml::WhyNoGpm(library, device)].push_back(nvml::Describe(device));
  for (const auto& [why_not, alike] : devices_by_reason)
    remarks.push_back(fmt::format("SM activity and tensor pipe (GPM) are {}read of {}{}{}{}",
                                  why_not.empty() ? "" : "not ", alike.front(),
                                  alike.size() == 1 ? "" : fmt::format(" and {} more", alike.size() - 1),
                                  why_not.empty() ? "" : ": ", why_not));
}

// One round of the readings that `record` takes continuously.
std::string ReadEverything() {
  const Result<nvml::Library> library = nvml::Library::Open();
  if (!library.has_value()) return kNvmlFailed + library.error().message;
  if (const auto result = library->functions().init(); result != GPUSONDE_NVML_SUCCESS) {
    const char kind = result == GPUSONDE_NVML_ERROR_DRIVER_NOT_LOADED         ? kNoDriver
                      : result == GPUSONDE_NVML_ERROR_LIB_RM_VERSION_MISMATCH ? kMismatch
                                                                              : kNvmlFailed;
    return kind + fmt::format("NVML does not start: {}", library->Explain(result));
  }
  std::vector<std::string> remarks;
  const Result<std::vector<nvml::Device>> devices = nvml::ListDevices(*library, remarks);
  if (!devices.has_value()) return kNvmlFailed + devices.error().message;
  if (devices->empty()) return kNvmlFailed + fmt::format("NVML sees no GPU {}", fmt::join(remarks, "; "));
  std::vector<std::string> names;
  for (const nvml::Device& device : *devices) names.push_back(device.name);
  nvml::Poller poller(*library, *devices);
  nvml::PollResult polled;
  poller.Round(kNanosPerSecond, polled);
  for (const nvml::Notice& notice : polled.notices) remarks.push_back(notice.text);
  DescribeGpm(*library, *devices, remarks);
  return kNvmlFine + fmt::format("driver {}, {} readings of {}{}{}", DriverVersion(library->functions()),
                                 polled.readings.size(), fmt::join(names, ", "), remarks.empty() ? "" : "\n",
                                 fmt::join(remarks, "\n"));
}

}  // namespace

Finding ProbeNvml(const Settings&) {
  const FoundLibrary nvml = FindLibrary({"libnvidia-ml.so.1"}, "nvmlInit_v2");
  if (nvml.path.empty())
    return Fails("NVIDIA's management library does not load: " + nvml.error,
                 "it comes with NVIDIA's driver; in a container ask for the `utility` capability");
  const Result<std::string> answer = InChild(ReadEverything);
  if (!answer.has_value() || answer->empty())
    return Fails(fmt::format("{} does not respond: {}", nvml.path,
                             answer.has_value() ? "no response" : answer.error().message),
                 std::string(WhatToDo(kNvmlFailed)));
  const std::string text = answer->substr(1);
  return answer->front() == kNvmlFine ? Works(text) : Fails(text, std::string(WhatToDo(answer->front())));
}

}  // namespace gpusonde::doctor
