// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/id128.h"
#include "exporters/prometheus/relabelling.h"
#include "exporters/prometheus/text.h"
#include "model/batch.h"
#include "model/drops.h"
#include "model/metric_catalogue.h"
#include "model/tables/devices.h"

namespace gpusonde::exporters::prometheus {

// As in memcpys.kind.
inline constexpr std::array<std::string_view, 6> kCopyKindNames = {"htod", "dtoh", "dtod",
                                                                   "ptop", "htoh", "unknown"};

// Sums the rows of a live agent for `GET /metrics`, in memory: an answer needs neither the store nor a query.
// Counters begin at 0 with the program and never fall.
//
// The number of series is bounded. There are series for kMaxDevices devices and, of those that used a GPU,
// kMaxProcesses processes; the rest is summed in series whose labels are `other`. A process keeps its series
// for kKeepExitedNs after its end and gets one as soon as there is room, from which its counters begin.
// Thread-safe.
class LiveTotals {
 public:
  static constexpr size_t kMaxDevices = 64;
  static constexpr size_t kMaxProcesses = 256;
  // Prometheus looks back this far for a series' last value, and a scrape shouldn't be longer apart.
  static constexpr int64_t kKeepExitedNs = int64_t{300} * 1'000'000'000;
  // A reading counts for this long; NVML is read at least once a second.
  static constexpr int64_t kReadingLastsNs = int64_t{10} * 1'000'000'000;
  // The profiling overhead is reported after each window, at least once a minute unless it costs very much.
  static constexpr int64_t kOverheadLastsNs = int64_t{150} * 1'000'000'000;

  // The rules apply to every series.
  explicit LiveTotals(Relabelling relabelling = {}) : relabelling_(std::move(relabelling)) {}
  LiveTotals(const LiveTotals&) = delete;
  LiveTotals& operator=(const LiveTotals&) = delete;

  // Adds the rows of a round, names before what refers to them; `now_ns` is monotonic.
  void Ingest(std::span<const model::Batch> batches, int64_t now_ns);

  std::string Render(Format format, int64_t now_ns, const OwnUse& own) const;
  // Of an exposition the families of gpusonde's own, without what NVML reads.
  void WriteOwnFamilies(SeriesWriter& writer, int64_t now_ns, const OwnUse& own) const;

  // What NVML read of a device last; values that are too old are absent.
  struct DeviceReadings {
    model::Device device;
    std::array<std::optional<double>, model::kMetricCatalogue.size()> values;  // by model::Metric
  };
  std::vector<DeviceReadings> CurrentReadings(int64_t now_ns) const;
  // The machine's name; empty before its first row.
  std::string host() const;

  // What was sent of one signal of OpenTelemetry's protocol: data points of metrics, or profiles.
  struct Pushed {
    int64_t accepted = 0;
    int64_t rejected = 0;
    int64_t dropped = 0;
    int64_t retries = 0;
    int64_t waiting = 0;  // requests
  };
  // Replaces what was set before.
  void SetPushed(const std::string& signal, const Pushed& pushed);
  // Rows that came too late for what was sent of the signal.
  void SetLateRows(const std::string& signal, int64_t rows);

 private:
  struct Sum {
    int64_t count = 0;
    int64_t bytes = 0;
    int64_t duration_ns = 0;
    void Add(const Sum& more);
  };
  struct Work {
    Sum kernels;
    std::array<Sum, kCopyKindNames.size()> copies;
    Sum sets;
  };
  struct Reading {
    double value = 0;
    int64_t read_ns = 0;  // monotonic
  };
  struct Device {
    std::optional<model::Device> row;
    Work work;
    std::array<std::optional<Reading>, model::kMetricCatalogue.size()> readings;
    std::map<int64_t, int64_t> xids;  // how many, by code
    int64_t last_xid = 0;
  };
  struct Process {
    std::string pid;
    std::string command;
    std::string container;       // id
    std::map<Id128, Work> work;  // by device
    std::map<Id128, Reading> memory;
    std::map<model::Metric, Reading> overhead;  // %
    double launches = 0;
    int64_t cpu_ns = 0;
  };
  struct Name {
    int32_t pid = 0;
    std::string command;
    std::string container;  // id; empty: none
  };
  // As dcgm-exporter labels what belongs to a container of a pod.
  struct PodContainer {
    std::string pod_namespace;
    std::string pod;
    std::string container;  // name

    auto operator<=>(const PodContainer&) const = default;
  };
  struct Allocation {
    Id128 device;
    PodContainer holder;
  };
  struct Ended {
    Id128 process;
    int64_t ended_ns = 0;  // monotonic
  };
  class Exposition;

  static bool IsCurrent(const Reading& reading, int64_t now_ns) {
    return now_ns - reading.read_ns <= kReadingLastsNs;
  }
  void IngestTable(const model::Batch& batch, int64_t now_ns);
  void IngestDevices(const model::Batch& batch);
  void IngestProcesses(const model::Batch& batch, int64_t now_ns);
  void IngestContainers(const model::Batch& batch);
  void ForgetContainers();
  void IngestPodDevices(const model::Batch& batch);
  void IngestIncidents(const model::Batch& batch);
  void IngestPacks(const model::Batch& batch);
  void IngestCopies(const model::Batch& batch);
  void IngestSets(const model::Batch& batch);
  void IngestLost(const model::Batch& batch);
  void IngestCalls(const model::Batch& batch);
  void IngestSamples(const model::Batch& batch);
  void IngestMetrics(const model::Batch& batch, int64_t now_ns);
  void IngestDrops(const model::Batch& batch);
  void ForgetEnded(int64_t now_ns);
  void Forget(const Id128& process);

  // The device itself, or the null id if it is beyond the limit.
  Id128 Bounded(const Id128& device);
  // The series of a process that uses a GPU if it has or gets one, else that of the others.
  Process& OfUser(const Id128& process);
  // The sums of the device and those of its process.
  std::array<Work*, 2> WorkOf(const Id128& process, const Id128& device);

  const Relabelling relabelling_;
  mutable std::mutex mutex_;  // guards what follows
  std::string host_;
  std::map<Id128, Device> devices_;            // those beyond the limit under the null id
  std::map<Id128, Process> processes_;         // those with series; the others under the null id
  std::unordered_map<Id128, Name> names_;      // of all running processes that have rows
  std::unordered_map<int32_t, Id128> by_pid_;  // the same
  std::deque<Ended> ended_;                    // in the order of time
  std::unordered_set<Id128> omitted_;          // those that used a GPU and have no series
  std::unordered_map<std::string, PodContainer> containers_;  // of pods, by id
  std::map<Id128, Allocation> allocations_;                   // those that last
  std::array<int64_t, model::kDropReasons.size()> drops_{};
  int64_t samples_ = 0;
  std::map<std::string, int64_t> incidents_;  // ended, by cause
  std::set<Id128> open_incidents_;
  std::map<std::string, Pushed> pushed_;  // by signal
  std::map<std::string, int64_t> late_rows_;
  std::deque<Id128> ended_incidents_;  // the last ones, as rows of ended incidents may be repeated
};

}  // namespace gpusonde::exporters::prometheus
