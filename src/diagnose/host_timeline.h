// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/id128.h"
#include "model/metric_catalogue.h"
#include "model/tables/metrics.h"
#include "model/tables/signals.h"

namespace gpusonde::diagnose {

// What threads did in a stretch of time, ns. The first seven sum to at most its length.
struct ThreadTime {
  double running = 0;
  double run_queue = 0;
  double blocked_io = 0;
  double blocked = 0;
  double waiting = 0;
  double sleeping = 0;
  double network = 0;                   // waiting, until a packet came
  double interrupted = 0;               // within running
  double reclaim = 0;                   // within running and blocked
  std::map<Id128, double> behind;       // of run_queue, by who ran; the zero id: nobody, or not known
  std::map<Id128, double> waiting_for;  // of waiting, by who was waited for; the zero id: not known
  std::map<Id128, double> sent_by;      // of network, by who sent the packet; the zero id: not known

  double total() const { return running + run_queue + blocked_io + blocked + waiting + sleeping + network; }
  ThreadTime& Add(const ThreadTime& other, double factor = 1);
};

// The host's signals of the last minutes, by thread and bucket. Not thread-safe.
class HostTimeline {
 public:
  void Take(const model::Signal& signal);
  void Take(const model::MetricValue& reading);

  // What a thread did within [from, to); buckets that lie there in part count in part.
  ThreadTime Of(const Id128& process, int32_t tid, int64_t from_ns, int64_t to_ns) const;

  // Calls visit(ThreadTime of the bucket's part, its start, its end) for each bucket of a thread in [from,
  // to).
  template <class Visit>
  void ForEachBucket(const Id128& process, int32_t tid, int64_t from_ns, int64_t to_ns, Visit visit) const;

  // The thread of a process that was running or wanted to for longest in [from, to), of all but one.
  std::optional<int32_t> BusiestThread(const Id128& process, int64_t from_ns, int64_t to_ns,
                                       std::optional<int32_t> except = std::nullopt) const;

  // How long all threads of a process ran in the buckets that begin in [from, to), ns.
  double RunningOf(const Id128& process, int64_t from_ns, int64_t to_ns) const;

  // The sum of a metric without threads over [from, to); of a process, or of the machine. Nothing where
  // nobody measured then.
  std::optional<double> SumOf(model::Metric metric, std::optional<Id128> process, int64_t from_ns,
                              int64_t to_ns) const;
  // The same of every process that has any.
  std::vector<std::pair<Id128, double>> SumsByProcess(model::Metric metric, int64_t from_ns,
                                                      int64_t to_ns) const;

  // The mean of a device's readings in [from, to), of a process where one is given; the last one before,
  // where there are none; nothing where nobody ever read. Flags: the share of readings with one of `bits`.
  std::optional<double> MeanReading(model::Metric metric, const Id128& device, int64_t from_ns, int64_t to_ns,
                                    uint64_t bits = 0) const;
  // A device's own readings in [from, to), in order of time.
  std::vector<std::pair<int64_t, double>> ReadingsOf(model::Metric metric, const Id128& device,
                                                     int64_t from_ns, int64_t to_ns) const;
  // All that there are readings of.
  std::set<Id128> Devices() const;
  // Since when the machine's sum of a metric is known; nothing where it isn't.
  std::optional<int64_t> FirstSumNs(model::Metric metric) const;
  // Means of readings of processes on the device in [from, to) × share of time that they cover.
  std::vector<std::pair<Id128, double>> ReadingsByProcess(model::Metric metric, const Id128& device,
                                                          int64_t from_ns, int64_t to_ns) const;
  // Values of an event's readings in [from, to).
  std::vector<double> EventsOf(model::Metric metric, const Id128& device, int64_t from_ns,
                               int64_t to_ns) const;

  // Whether anything is known of this process's threads.
  bool Knows(const Id128& process) const { return threads_.contains(process); }

  // Nobody will ask for anything before this time.
  void ForgetBefore(int64_t time_ns);

 private:
  struct Cell {
    int64_t length_ns = 0;
    ThreadTime time;
  };
  struct Sum {
    int64_t length_ns = 0;
    double value = 0;
  };
  using Buckets = std::map<int64_t, Cell>;  // by start
  using Series = std::map<int64_t, Sum>;    // likewise
  using ReadingKey = std::pair<model::Metric, Id128>;

  void AddToThread(Buckets& buckets, const model::Signal& signal, model::Metric metric, int64_t start_ns,
                   double value);

  std::map<Id128, std::map<int32_t, Buckets>> threads_;
  std::map<std::pair<model::Metric, std::optional<Id128>>, Series> sums_;
  std::map<ReadingKey, std::multimap<int64_t, std::pair<std::optional<Id128>, double>>> readings_;
};

template <class Visit>
void HostTimeline::ForEachBucket(const Id128& process, int32_t tid, int64_t from_ns, int64_t to_ns,
                                 Visit visit) const {
  const auto threads = threads_.find(process);
  if (threads == threads_.end()) return;
  const auto thread = threads->second.find(tid);
  if (thread == threads->second.end()) return;
  auto at = thread->second.upper_bound(from_ns);
  if (at != thread->second.begin()) --at;
  for (; at != thread->second.end() && at->first < to_ns; ++at) {
    const int64_t begin_ns = std::max(at->first, from_ns);
    const int64_t end_ns = std::min(at->first + at->second.length_ns, to_ns);
    if (end_ns <= begin_ns) continue;
    ThreadTime part;
    part.Add(at->second.time,
             static_cast<double>(end_ns - begin_ns) / static_cast<double>(at->second.length_ns));
    visit(part, begin_ns, end_ns);
  }
}

}  // namespace gpusonde::diagnose
