// SPDX-License-Identifier: Apache-2.0
#include "importers/kineto/xla_tracks.h"

#include <simdjson.h>

namespace gpusonde::importers::kineto {
namespace {

namespace dom = simdjson::dom;

constexpr std::string_view kDevice = "/device:GPU:";
constexpr std::string_view kHost = "/host:CPU";
constexpr std::string_view kStream = "Stream #";

// The digits after a part of a name; empty if the name has no such part.
std::string_view NumberAfter(std::string_view name, std::string_view part) {
  const size_t at = name.find(part);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = name.substr(at + part.size());
  return rest.substr(0, rest.find_first_not_of("0123456789"));
}

}  // namespace

bool XlaTracks::MayBeIn(std::string_view begin) {
  return begin.find(R"("X")") == std::string_view::npos || begin.find(kDevice) != std::string_view::npos;
}

void XlaTracks::Learn(std::string_view events) {
  // More is an event of many MB, which no profiler writes; parsed whole it would take ten times the memory.
  constexpr size_t kMaxBytes = size_t{4} << 20;
  if (events.size() > kMaxBytes || events.find(kDevice) == std::string_view::npos) return;
  dom::parser parser;
  dom::array all;
  if (parser.parse(simdjson::padded_string(events)).get(all) != simdjson::SUCCESS) return;
  std::map<int64_t, std::string> devices;
  std::map<std::pair<int64_t, int64_t>, std::string> streams;
  for (const dom::element event : all) {
    std::string_view phase, what, name;
    int64_t pid = 0, tid = 0;
    if (event["ph"].get(phase) != simdjson::SUCCESS || phase != "M") continue;
    if (event["name"].get(what) != simdjson::SUCCESS || event["pid"].get(pid) != simdjson::SUCCESS ||
        event["args"]["name"].get(name) != simdjson::SUCCESS)
      continue;
    if (what == "process_name") {
      const std::string_view device = NumberAfter(name, kDevice);
      if (!device.empty()) devices.emplace(pid, device);
      if (name.find(kHost) != std::string_view::npos) hosts_.insert(pid);
    } else if (what == "thread_name" && event["tid"].get(tid) == simdjson::SUCCESS) {
      const std::string_view stream = NumberAfter(name, kStream);
      if (!stream.empty()) streams.emplace(std::pair(pid, tid), stream);
    }
  }
  for (const auto& [thread, number] : streams)
    if (const auto device = devices.find(thread.first); device != devices.end())
      streams_.emplace(thread, Stream{.device = device->second, .number = number});
}

const XlaTracks::Stream* XlaTracks::FindStream(int64_t pid, int64_t tid) const {
  const auto found = streams_.find({pid, tid});
  return found != streams_.end() ? &found->second : nullptr;
}

}  // namespace gpusonde::importers::kineto
