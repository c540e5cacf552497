// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/id128.h"
#include "base/time_range.h"
#include "diagnose/bucket_runs.h"
#include "diagnose/thread_time.h"
#include "model/metric_catalogue.h"
#include "model/tables/metrics.h"
#include "model/tables/signals.h"

namespace gpusonde::diagnose {

// Retains the host signals of the last minutes, by thread and time bucket. Not thread-safe.
class HostTimeline {
 public:
  void Ingest(const model::Signal& signal);
  void Ingest(const model::MetricValue& reading);

  // Returns the time by state of a thread in the range. Buckets that overlap in part count proportionally.
  ThreadTime Of(const Id128& process, int32_t tid, const TimeRange& range) const;

  // Calls visit(time by state of a whole bucket, time range of the bucket, its part in the range) for each
  // bucket of a thread that overlaps the range.
  template <class Visit>
  void ForEachBucket(const Id128& process, int32_t tid, const TimeRange& range, Visit visit) const;

  // Calls visit(thread id, time by state in the range) for each thread of a process, except one.
  template <class Visit>
  void ForEachOther(const Id128& process, const TimeRange& range, std::optional<int32_t> except,
                    Visit visit) const;

  // Returns the thread of a process, except one, that was neither asleep nor waiting for most of the range.
  std::optional<int32_t> BusiestThread(const Id128& process, const TimeRange& range,
                                       std::optional<int32_t> except = std::nullopt) const;

  // Returns, by process that they waited for, how long the threads of this process, except one, waited, ns.
  std::map<Id128, double> WaitsOfOthers(const Id128& process, const TimeRange& range, int32_t except) const;

  // Returns the time by state of the thread of a process, except one, that was stopped longest; all zeros if
  // none was.
  ThreadTime LongestStopped(const Id128& process, const TimeRange& range, int32_t except) const;

  // Returns the start of the first of a thread's signals that are kept; nullopt if there are none.
  std::optional<int64_t> KnownSince(const Id128& process, int32_t tid) const;

  // Returns the time until which all of a thread's signals have arrived: the start of its last bucket, ns; 0
  // if it has none.
  int64_t KnownUntil(const Id128& process, int32_t tid) const;

  // Returns the CPU time of all threads of a process in the buckets that begin in the range, ns.
  double RunningOf(const Id128& process, const TimeRange& range) const;

  // Returns the sum of a metric that has no thread, of a process or of the machine. Nullopt if it was never
  // measured.
  std::optional<double> SumOf(model::Metric metric, std::optional<Id128> process,
                              const TimeRange& range) const;
  // The same for every process with a positive sum.
  std::vector<std::pair<Id128, double>> SumsByProcess(model::Metric metric, const TimeRange& range) const;

  // Returns the mean rate (per ns) of such a metric over the part of the range in which it was measured.
  // Nullopt if it wasn't.
  std::optional<double> RateWhileMeasured(model::Metric metric, const Id128& process,
                                          const TimeRange& range) const;

  // Returns the mean of a device's own readings in the range; if there are none, the last reading before.
  // Nullopt if there is none either. For flags: the share of readings with any of `bits` set.
  std::optional<double> MeanReading(model::Metric metric, const Id128& device, const TimeRange& range,
                                    uint64_t bits = 0) const;
  // Returns a device's own readings in the range, sorted by time.
  std::vector<std::pair<int64_t, double>> ReadingsOf(model::Metric metric, const Id128& device,
                                                     const TimeRange& range) const;
  // Returns all devices that have readings.
  std::set<Id128> Devices() const;
  // Returns the start of the machine's retained values of a metric; nullopt if there are none.
  std::optional<int64_t> FirstSumNs(model::Metric metric) const;
  // Returns, by process, the sum of its readings on the device per second of the range.
  std::vector<std::pair<Id128, double>> ReadingsByProcess(model::Metric metric, const Id128& device,
                                                          const TimeRange& range) const;
  // Returns the codes of the errors (XIDs) that the driver reported for a device in the range, or shortly
  // before it.
  std::vector<int64_t> XidsOf(const Id128& device, const TimeRange& range) const;

  // Whether any signal of this process's threads is retained.
  bool Knows(const Id128& process) const { return threads_.contains(process); }

  // Drops what lies before this time, except the last reading of each device.
  void ForgetBefore(int64_t time_ns);

 private:
  struct Sum {
    int64_t length_ns = 0;
    double value = 0;
  };
  using Series = std::map<int64_t, Sum>;  // by start
  using ReadingKey = std::pair<model::Metric, Id128>;
  struct Reading {
    std::optional<Id128> process;  // nullopt: of the device itself
    double value = 0;
  };

  const BucketRuns* BucketsOf(const Id128& process, int32_t tid) const;  // null: none are kept
  static void AddToThread(BucketRuns& buckets, const model::Signal& signal, ThreadState state);
  void AddToSums(const model::Signal& signal, model::Metric metric);

  std::map<Id128, std::map<int32_t, BucketRuns>> threads_;
  std::map<Id128, std::set<int32_t>> ever_stopped_;  // threads
  std::map<std::pair<model::Metric, std::optional<Id128>>, Series> sums_;
  std::map<ReadingKey, std::multimap<int64_t, Reading>> readings_;  // by time
};

template <class Visit>
void HostTimeline::ForEachBucket(const Id128& process, int32_t tid, const TimeRange& range,
                                 Visit visit) const {
  if (const BucketRuns* buckets = BucketsOf(process, tid); buckets != nullptr) buckets->ForEach(range, visit);
}

template <class Visit>
void HostTimeline::ForEachOther(const Id128& process, const TimeRange& range, std::optional<int32_t> except,
                                Visit visit) const {
  const auto threads = threads_.find(process);
  if (threads == threads_.end()) return;
  for (const auto& [tid, buckets] : threads->second)
    if (tid != except) visit(tid, Of(process, tid, range));
}

}  // namespace gpusonde::diagnose
