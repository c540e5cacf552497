// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "base/id128.h"

namespace gpusonde::serve {

// Hosts whose agents were refused lately, and why. The list of hosts shows them, as a host beyond the limit
// isn't in it. Thread-safe.
class Refusals {
 public:
  // Of more hosts than this, those that were refused last are known.
  static constexpr size_t kMaxRefusedHosts = 1000;
  // Agents that are refused try again within a minute.
  static constexpr int64_t kLatelyNs = 150'000'000'000;

  // `now_ns` is a monotonic clock. `why` is an error's message. An agent that sends the same rows again is
  // known by its spool.
  void Add(const std::string& host, std::string why, int64_t now_ns, const Id128& again_from = Id128());
  // Forgets what that agent sent again: it has been stored.
  void ForgetStored(const std::string& host, const Id128& spool);

  // A sentence for each reason, at most six: the reasons of most hosts first. Of one host if it is named.
  std::vector<std::string> Sentences(int64_t now_ns, const std::string& host = {}) const;

 private:
  struct Refusal {
    std::string why;
    int64_t time_ns = 0;
    Id128 again_from = {};
  };
  mutable std::mutex mutex_;
  std::map<std::string, Refusal> by_host_;
};

}  // namespace gpusonde::serve
