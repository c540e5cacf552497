// SPDX-License-Identifier: Apache-2.0
#include "importers/kineto/metadata.h"

#include <simdjson.h>

#include <algorithm>

namespace gpusonde::importers::kineto {
namespace {

// How many bytes the first object or array of a text has; empty if it doesn't end.
std::optional<size_t> LengthOfFirst(std::string_view text) {
  int64_t depth = 0;
  bool in_string = false;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (in_string) {
      if (c == '\\') ++at;
      in_string = c != '"';
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if ((c == '}' || c == ']') && --depth == 0) {
      return at + 1;
    }
  }
  return std::nullopt;
}

TracedDevice DeviceOf(simdjson::dom::element properties) {
  TracedDevice device;
  int64_t number = 0;
  std::string_view name;
  if (properties["id"].get(number) == simdjson::SUCCESS) device.ordinal = static_cast<int32_t>(number);
  if (properties["name"].get(name) == simdjson::SUCCESS) device.name = name;
  if (properties["numSms"].get(number) == simdjson::SUCCESS) device.sm_count = number;
  if (properties["totalGlobalMem"].get(number) == simdjson::SUCCESS) device.memory_bytes = number;
  // AMD's GPUs have other waves and limits.
  int64_t warp = 0, major = 0, minor = 0;
  Multiprocessor& limits = device.multiprocessor;
  const auto read = [&properties](std::string_view key, int64_t& value) {
    return properties[key].get(value) == simdjson::SUCCESS;
  };
  if (!read("warpSize", warp) || warp != 32 || !read("computeMajor", major) || !read("computeMinor", minor))
    return device;
  if (major < 0 || major > 100 || minor < 0 || minor > 9) return device;
  read("maxThreadsPerMultiprocessor", limits.threads);
  read("regsPerMultiprocessor", limits.registers);
  read("sharedMemPerMultiprocessor", limits.shared_bytes);
  limits.SetCapability(major, minor);
  return device;
}

}  // namespace

Metadata ParseMetadata(std::string_view text) {
  Metadata metadata;
  const std::optional<size_t> length = LengthOfFirst(text);
  metadata.complete = length.has_value();
  if (!metadata.complete) return metadata;
  // As deep as the text can be: simdjson's 1,024 levels would make deeper ones invalid.
  simdjson::dom::parser parser;
  const auto depth =
      static_cast<size_t>(std::ranges::count_if(text, [](char c) { return c == '{' || c == '['; }));
  const simdjson::padded_string padded(text.substr(0, *length));
  simdjson::dom::element value;
  if (parser.allocate(*length, depth + 1) != simdjson::SUCCESS ||
      parser.parse(padded).get(value) != simdjson::SUCCESS)
    return metadata;
  metadata.valid = true;
  simdjson::dom::object root;
  if (value.get(root) != simdjson::SUCCESS) return metadata;
  int64_t number = 0;
  if (root["baseTimeNanoseconds"].get(number) == simdjson::SUCCESS) metadata.base_time_ns = number;
  if (root["distributedInfo"]["rank"].get(number) == simdjson::SUCCESS) metadata.rank = number;
  simdjson::dom::array devices;
  if (root["deviceProperties"].get(devices) == simdjson::SUCCESS)
    for (const simdjson::dom::element device : devices) metadata.devices.push_back(DeviceOf(device));
  return metadata;
}

}  // namespace gpusonde::importers::kineto
