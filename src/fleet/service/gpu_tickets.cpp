// SPDX-License-Identifier: Apache-2.0
#include "fleet/service/gpu_tickets.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string_view>

#include "base/fd.h"
#include "base/json_writer.h"
#include "base/text.h"
#include "fleet/service/keys.h"

namespace gpusonde::fleet {
namespace {

using nlohmann::json;

constexpr int kGpuTicketsVersion = 1;
constexpr size_t kMaxGpuTicketsBytes = size_t{16} << 20;

std::string JsonOf(const std::map<uint64_t, std::string>& gpus) {
  JsonWriter out;
  out.BeginObject().Field("version", kGpuTicketsVersion).Key("gpus").BeginObject();
  for (const auto& [device, gpu] : gpus) out.Field(DeviceName(device), gpu);
  return out.EndObject().EndObject().Take() + "\n";
}

std::optional<uint64_t> DeviceNamed(const std::string& name) {
  const std::optional<uint64_t> device = ParseNumber<uint64_t>(name, 16);
  return device.has_value() && DeviceName(*device) == name ? device : std::nullopt;
}

Result<std::map<uint64_t, std::string>> ParseGpus(const std::string& text, const std::string& path) {
  const auto corrupt = [&] {
    return Fail(
        ErrorCode::kCorrupt,
        path + " is not what `gpusonde fleet report` writes; without it, tickets are given GPUs anew");
  };
  const json document = json::parse(text, nullptr, false);
  if (!document.is_object() || !document.contains("version") || !document["version"].is_number_integer())
    return corrupt();
  if (document["version"] != kGpuTicketsVersion)
    return Fail(ErrorCode::kTooNew, fmt::format("{}: version {}, this gpusonde reads {}", path,
                                                document["version"].dump(), kGpuTicketsVersion));
  if (!document.contains("gpus") || !document["gpus"].is_object()) return corrupt();
  std::map<uint64_t, std::string> gpus;
  std::set<std::string> seen;
  for (const auto& [name, gpu] : document["gpus"].items()) {
    const std::optional<uint64_t> device = DeviceNamed(name);
    if (!device.has_value() || !gpu.is_string() || !seen.insert(gpu.get<std::string>()).second)
      return corrupt();
    gpus.emplace(*device, gpu.get<std::string>());
  }
  return gpus;
}

}  // namespace

Result<GpuTickets> GpuTickets::Open(const std::string& folder, std::vector<uint64_t> devices) {
  GpuTickets tickets(folder + "/gpus.json", std::move(devices));
  const Result<std::string> text = ReadFile(tickets.path_, kMaxGpuTicketsBytes);
  if (!text.has_value() && text.error().code == ErrorCode::kNotFound) return tickets;
  if (!text.has_value()) return Fail(text.error());
  ASSIGN_OR_RETURN(tickets.gpus_, ParseGpus(*text, tickets.path_));
  return tickets;
}

Status GpuTickets::Assign(std::vector<std::string> gpus) {
  std::map<uint64_t, std::string> assigned = gpus_;
  std::set<std::string_view> taken;
  for (const auto& [device, gpu] : gpus_) taken.insert(gpu);
  std::erase_if(gpus, [&](const std::string& gpu) { return taken.contains(gpu); });
  std::ranges::sort(gpus);
  auto next = gpus.begin();
  for (const uint64_t device : devices_)
    if (next != gpus.end() && !assigned.contains(device)) assigned.emplace(device, *next++);
  if (assigned.size() == gpus_.size()) return {};
  TRY(WriteFileAtomically(path_, JsonOf(assigned)));
  gpus_ = std::move(assigned);
  return {};
}

const std::string* GpuTickets::GpuOf(uint64_t device) const {
  const auto found = gpus_.find(device);
  return found == gpus_.end() ? nullptr : &found->second;
}

}  // namespace gpusonde::fleet
