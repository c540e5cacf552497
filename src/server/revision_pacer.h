// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>

#include "base/time.h"

namespace gpusonde::server {

// CPU time of all threads of this process, ns.
int64_t ProcessCpuNow();

// Decides when polling clients get new data.
//
// A response may sum up a day, and new rows arrive every second. So the revision that If-None-Match is
// compared with is renewed only after 66 times the CPU time that answering polls took since the last renewal:
// all polling pages together cost 1.5 % of a core, whatever they request and however much data there is. At
// first, as after a restart, an answer costs more than later ones: data is no older than polls have been
// coming for.
//
// Thread-safe.
class RevisionPacer {
 public:
  using Clock = std::function<int64_t()>;
  explicit RevisionPacer(Clock now_ns = MonotonicNow, Clock cpu_ns = ProcessCpuNow)
      : now_ns_(std::move(now_ns)), cpu_ns_(std::move(cpu_ns)) {}

  // The revision as of the last renewal; calls `newest` when the next renewal is due.
  uint64_t Revision(const std::function<uint64_t()>& newest);

  // While one exists, the process's CPU time counts as the cost of polls.
  class Answering {
   public:
    explicit Answering(RevisionPacer& pacer) : pacer_(pacer) { pacer_.Begin(); }
    ~Answering() { pacer_.End(); }
    Answering(const Answering&) = delete;
    Answering& operator=(const Answering&) = delete;

   private:
    RevisionPacer& pacer_;
  };

 private:
  void Begin();
  void End();
  void CountCost();

  Clock now_ns_, cpu_ns_;
  std::mutex mutex_;            // guards the members below
  int64_t asked_since_ns_ = 0;  // monotonic; without a pause, until asked_ns_
  std::optional<int64_t> asked_ns_;
  uint64_t revision_ = 0;
  int64_t renewed_ns_ = 0;  // monotonic
  int64_t cost_ns_ = 0;     // CPU time of answers since then
  int answering_ = 0;
  int64_t counted_to_ns_ = 0;  // CPU time counted so far, while a poll is being answered
};

}  // namespace gpusonde::server
