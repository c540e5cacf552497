// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "base/time_range.h"
#include "serve/host_reader.h"
#include "serve/hosts.h"
#include "store/live/live_store.h"
#include "usage/hours.h"
#include "usage/usage.h"

namespace gpusonde::serve {

// The GPU time of all hosts, summed by the hour in memory, so that a question about all of them is answered
// within about a second. Of each host only the rows are read that have arrived since the last time: every 10
// minutes, for at most an eighth of the time, and for half of the time while clients ask (HostReader).
// Thread-safe.
class HostUsage {
 public:
  struct Options {
    int64_t age_ns = 30 * kNanosPerSecond;     // after which a host is read again while clients ask
    std::chrono::milliseconds timeout{1'000};  // how long Sum waits
  };
  // `hosts` must outlive it.
  HostUsage(Hosts& hosts, const Options& options);
  explicit HostUsage(Hosts& hosts) : HostUsage(hosts, Options()) {}

  // The usage of all hosts in a range, which is widened to whole hours and ends no later than now; its
  // coverage says what is missing. Waits a little for hosts that were not read lately.
  usage::Usage Sum(const TimeRange& range, const usage::SumBy& by);

  // The GPU time of each host in such a range as far as it is summed, without waiting.
  struct Total {
    double accountable_ns = 0;
    double idle_ns = 0;
  };
  std::map<std::string, Total> Totals(const TimeRange& range);

 private:
  struct Known {
    std::shared_ptr<const usage::UsageHours> hours;
    std::string error;  // of the last time; empty: none
    std::optional<store::Day> first_day;
    int64_t last_seen_ns = 0;  // of the host, before it was read
    int64_t read_ns = 0;
  };

  std::vector<Known> Ask(const std::vector<std::shared_ptr<Host>>& all, std::chrono::milliseconds timeout);
  Known Read(Host& host, Known known) const;
  static bool IsRead(const Host& host, const Known& known, int64_t age_ns);
  size_t MaxBytes() const;

  Hosts& hosts_;
  const Options options_;
  HostReader<Known> reader_;  // the last member: its thread uses the others
};

}  // namespace gpusonde::serve
