// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

// What works on this machine, found by trying it: each probe does on a small scale what the program would do.
namespace gpusonde::doctor {

// What a capability is good for; the groups of the report.
enum class Use : uint8_t {
  kRecord,  // `gpusonde record` and `up` need it
  kDetail,  // `record` and `up` show more with it
  kGpu,     // needed to see GPUs
  kScale,   // needed to analyse traces over many processes
};

// Stable lower-case name, as used in JSON.
std::string_view Name(Use use);

// What a probe found. Sentences have no final full stop.
struct Finding {
  bool works = false;
  std::string why;         // what was tried, and the result
  std::string what_to_do;  // empty when it works
};

inline Finding Works(std::string why) { return {true, std::move(why), {}}; }
inline Finding Fails(std::string why, std::string what_to_do) {
  return {false, std::move(why), std::move(what_to_do)};
}

// What probes may depend on besides the machine itself.
struct Settings {
  std::string state_folder;  // where `up` keeps its data
};

// One thing that may work or not. Probes leave nothing behind and change nothing.
struct Capability {
  std::string_view name;  // stable, as used in JSON and by the `needs:` of text cases
  Use use;
  Finding (*probe)(const Settings& settings);
};

// Every capability, by name. A new one is a file of its own and a line in capabilities.cpp.
std::span<const Capability> AllCapabilities();

}  // namespace gpusonde::doctor
