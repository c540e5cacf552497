// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/time.h"
#include "exporters/prometheus/families.h"
#include "exporters/prometheus/live_totals.h"

namespace gpusonde::exporters::prometheus {
namespace {

constexpr std::array kGpuFamilies = {&kGpuKernels,      &kGpuKernelSeconds, &kGpuCopies,   &kGpuCopyBytes,
                                     &kGpuCopySeconds,  &kGpuSets,          &kGpuSetBytes, &kGpuSetSeconds,
                                     &kGpuPcieReceived, &kGpuPcieSent,      &kGpuXids};
constexpr std::array kProcessGpuFamilies = {&kProcessGpuKernels, &kProcessGpuKernelSeconds,
                                            &kProcessGpuCopyBytes, &kProcessGpuCopySeconds,
                                            &kProcessGpuMemory};
constexpr std::array kProcessFamilies = {
    &kProcessLaunches,     &kProcessCpuSeconds,      &kProcessOverheadBudget,  &kProcessOverheadSpent,
    &kProcessOverheadCost, &kProcessOverheadCostLow, &kProcessOverheadCostHigh};
constexpr std::array kMachineFamilies = {&kIncidents, &kIncidentsOpen, &kDropped, &kSamples,
                                         &kProcessesOmitted};
constexpr std::array kPushFamilies = {&kOtlpItems, &kOtlpRetries, &kOtlpWaiting, &kOtlpLateRows};
constexpr std::array kServeFamilies = {&kServeHosts,  &kServeAgents,   &kServeHostsOmitted, &kServeRequests,
                                       &kServeFrames, &kServeReceived, &kQueries,           &kQuerySeconds,
                                       &kSlowQueries, &kConnections,   &kConnectionsClosed, &kDenied,
                                       &kTlsFailures, &kTlsExpiry,     &kSessions};
constexpr std::array kServedHostFamilies = {&kServeHostSeen, &kServeSpoolAge, &kServeBytes};
constexpr std::array kOwnFamilies = {&kBuild, &kOwnCpuSeconds, &kOwnMemory, &kOwnStart, &kRepeated};

constexpr std::string_view kOther = "other";

using Labels = std::vector<Label>;

Labels Join(Labels labels, std::span<const Label> more) {
  labels.insert(labels.end(), more.begin(), more.end());
  return labels;
}

double Seconds(int64_t ns) { return static_cast<double>(ns) / static_cast<double>(kNanosPerSecond); }

}  // namespace

std::span<const FamilyGroup> AllGroups() {
  static constexpr std::array kGroups = {
      FamilyGroup{
          "each GPU",
          "gpu, UUID; namespace, pod and container that alone have it allocated; of copies kind, of XIDs xid",
          kGpuFamilies},
      FamilyGroup{"each process on each GPU",
                  "gpu, UUID, pid, command; its namespace, pod and container; of copied bytes kind",
                  kProcessGpuFamilies},
      FamilyGroup{"each process that used a GPU", "pid, command; its namespace, pod and container",
                  kProcessFamilies},
      FamilyGroup{"the machine", "of incidents cause, of dropped reason", kMachineFamilies},
      FamilyGroup{"what `--otlp` sends", "signal; of items outcome", kPushFamilies},
      FamilyGroup{"gpusonde", "of build_info version", kOwnFamilies},
      FamilyGroup{"`serve`",
                  "of requests outcome, of queries path, of HTTP and TLS address, of failures reason",
                  kServeFamilies},
      FamilyGroup{"each host of `serve`", "host", kServedHostFamilies},
  };
  return kGroups;
}

// Writes one exposition; lives while the totals are locked.
class LiveTotals::Exposition {
 public:
  Exposition(const LiveTotals& totals, SeriesWriter& writer, int64_t now_ns)
      : totals_(totals), writer_(writer), now_ns_(now_ns) {
    for (const auto& [id, device] : totals.devices_)
      if (device.row.has_value() || id == Id128()) labels_.emplace(id, LabelsOf(device));
    // A device that several have, in time-slices, belongs to none of them alone.
    std::map<Id128, std::set<const PodContainer*, ByContent>> holders;
    for (const auto& [id, allocation] : totals.allocations_)
      holders[allocation.device].insert(&allocation.holder);
    for (const auto& [device, of_device] : holders)
      if (const auto labels = labels_.find(device); labels != labels_.end() && of_device.size() == 1)
        labels->second.holder = *of_device.begin();
  }

  // dcgm-exporter's metrics.
  void WriteDcgm() {
    for (const DcgmFamily& dcgm : kDcgmFamilies) {
      writer_.Begin(dcgm.family);
      ForEachReading(dcgm.metric, [&](const DeviceLabels& labels, double value) {
        WriteDcgm(labels, value * dcgm.scale / dcgm.divisor);
      });
    }
    writer_.Begin(kLastXid);
    // Only where NVML, which reports XIDs, is read; those of MIG instances are the GPU's.
    ForEachDevice([&](const DeviceLabels& labels, const Device& device) {
      if (labels.gpu_instance.empty() &&
          std::ranges::any_of(device.readings, &std::optional<Reading>::has_value))
        WriteDcgm(labels, device.last_xid);
    });
  }

  // All others.
  void WriteOwnFamilies(const OwnUse& own) {
    WriteGpus();
    WriteProcesses();
    WriteMachine();
    WritePushed();
    writer_.WriteOwn(own);
  }

 private:
  struct ByContent {
    bool operator()(const PodContainer* a, const PodContainer* b) const { return *a < *b; }
  };
  static Labels LabelsOf(const PodContainer* container) {
    if (container == nullptr) return {};
    return {{"namespace", container->pod_namespace},
            {"pod", container->pod},
            {"container", container->container}};
  }

  // Values of labels that others refer to.
  struct DeviceLabels {
    std::string ordinal;
    std::string uuid;
    std::string file;  // as in /dev
    std::string pci_bus;
    std::string model;
    std::string gpu_instance;              // of a MIG instance
    const PodContainer* holder = nullptr;  // the only one that has it allocated

    Labels Short() const { return {{"gpu", ordinal}, {"UUID", uuid}}; }
    Labels WithHolder() const { return Join(Short(), LabelsOf(holder)); }
  };
  static DeviceLabels LabelsOf(const Device& device) {
    if (!device.row.has_value()) return {.ordinal = std::string(kOther), .uuid = std::string(kOther)};
    const model::Device& row = *device.row;
    return {.ordinal = std::to_string(row.ordinal),
            .uuid = row.uuid,
            .file = fmt::format("nvidia{}", row.ordinal),
            .pci_bus = row.pci_bus.value_or(""),
            .model = row.name,
            .gpu_instance = row.gpu_instance.has_value() ? std::to_string(*row.gpu_instance) : ""};
  }

  // dcgm-exporter's labels.
  template <class Value>
  void WriteDcgm(const DeviceLabels& labels, Value value) {
    Labels own;
    if (!labels.gpu_instance.empty()) own.push_back({"GPU_I_ID", labels.gpu_instance});
    own.insert(own.end(), {{"gpu", labels.ordinal},
                           {"UUID", labels.uuid},
                           {"pci_bus_id", labels.pci_bus},
                           {"device", labels.file},
                           {"modelName", labels.model},
                           {"Hostname", totals_.host_}});
    writer_.Write(Join(std::move(own), LabelsOf(labels.holder)), {}, value);
  }

  template <class Visit>
  void ForEachDevice(Visit visit) {
    for (const auto& [id, device] : totals_.devices_)
      if (const auto labels = labels_.find(id); labels != labels_.end()) visit(labels->second, device);
  }
  template <class Visit>
  void ForEachReading(model::Metric metric, Visit visit) {
    ForEachDevice([&](const DeviceLabels& labels, const Device& device) {
      const std::optional<Reading>& reading = device.readings[static_cast<size_t>(metric)];
      if (reading.has_value() && IsCurrent(*reading, now_ns_)) visit(labels, reading->value);
    });
  }

  // A family of sums of GPU work, of devices.
  template <class ValueOf>
  void WriteGpu(const Family& family, ValueOf value_of) {
    writer_.Begin(family);
    ForEachDevice([&](const DeviceLabels& labels, const Device& device) {
      writer_.Write(labels.WithHolder(), {}, value_of(device.work));
    });
  }
  template <class ValueOf>
  void WriteGpuCopies(const Family& family, ValueOf value_of) {
    writer_.Begin(family);
    ForEachDevice([&](const DeviceLabels& labels, const Device& device) {
      WriteCopies(labels.WithHolder(), device.work, value_of);
    });
  }
  template <class ValueOf>
  void WriteCopies(std::span<const Label> labels, const Work& work, ValueOf value_of) {
    for (size_t kind = 0; kind < kCopyKindNames.size(); ++kind)
      if (work.copies[kind].count > 0)
        writer_.Write(labels, {{"kind", kCopyKindNames[kind]}}, value_of(work.copies[kind]));
  }

  void WriteGpus() {
    const auto count = [](const Sum& sum) { return sum.count; };
    const auto bytes = [](const Sum& sum) { return sum.bytes; };
    const auto seconds = [](const Sum& sum) { return Seconds(sum.duration_ns); };
    WriteGpu(kGpuKernels, [](const Work& work) { return work.kernels.count; });
    WriteGpu(kGpuKernelSeconds, [](const Work& work) { return Seconds(work.kernels.duration_ns); });
    WriteGpuCopies(kGpuCopies, count);
    WriteGpuCopies(kGpuCopyBytes, bytes);
    WriteGpuCopies(kGpuCopySeconds, seconds);
    WriteGpu(kGpuSets, [](const Work& work) { return work.sets.count; });
    WriteGpu(kGpuSetBytes, [](const Work& work) { return work.sets.bytes; });
    WriteGpu(kGpuSetSeconds, [](const Work& work) { return Seconds(work.sets.duration_ns); });
    for (const auto& [metric, family] : {std::pair(model::Metric::kGpuPcieRx, &kGpuPcieReceived),
                                         std::pair(model::Metric::kGpuPcieTx, &kGpuPcieSent)}) {
      writer_.Begin(*family);
      ForEachReading(metric, [&](const DeviceLabels& labels, double value) {
        writer_.Write(labels.WithHolder(), {}, value);
      });
    }
    writer_.Begin(kGpuXids);
    ForEachDevice([&](const DeviceLabels& labels, const Device& device) {
      for (const auto& [code, times] : device.xids)
        writer_.Write(labels.WithHolder(), {{"xid", std::to_string(code)}}, times);
    });
  }

  Labels LabelsOf(const Process& process) const {
    if (process.pid.empty()) return {{"pid", kOther}, {"command", kOther}};
    const auto container = totals_.containers_.find(process.container);
    return Join({{"pid", process.pid}, {"command", process.command}},
                LabelsOf(container == totals_.containers_.end() ? nullptr : &container->second));
  }

  // A family of GPU work of processes; `write` gets the labels so far.
  template <class WriteSeries>
  void WriteProcessGpu(const Family& family, WriteSeries write) {
    writer_.Begin(family);
    for (const auto& [id, process] : totals_.processes_) {
      const Labels own = LabelsOf(process);
      for (const auto& [device, work] : process.work)
        if (const auto labels = labels_.find(device); labels != labels_.end())
          write(Join(labels->second.Short(), own), work);
    }
  }

  void WriteProcesses() {
    WriteProcessGpu(kProcessGpuKernels, [this](std::span<const Label> labels, const Work& work) {
      writer_.Write(labels, {}, work.kernels.count);
    });
    WriteProcessGpu(kProcessGpuKernelSeconds, [this](std::span<const Label> labels, const Work& work) {
      writer_.Write(labels, {}, Seconds(work.kernels.duration_ns));
    });
    WriteProcessGpu(kProcessGpuCopyBytes, [this](std::span<const Label> labels, const Work& work) {
      WriteCopies(labels, work, [](const Sum& sum) { return sum.bytes; });
    });
    WriteProcessGpu(kProcessGpuCopySeconds, [this](std::span<const Label> labels, const Work& work) {
      Sum all;
      for (const Sum& sum : work.copies) all.Add(sum);
      writer_.Write(labels, {}, Seconds(all.duration_ns));
    });
    writer_.Begin(kProcessGpuMemory);
    for (const auto& [id, process] : totals_.processes_) {
      const Labels own = LabelsOf(process);
      for (const auto& [device, reading] : process.memory)
        if (const auto labels = labels_.find(device); labels != labels_.end() && IsCurrent(reading, now_ns_))
          writer_.Write(Join(labels->second.Short(), own), {}, reading.value);
    }
    writer_.Begin(kProcessLaunches);
    for (const auto& [id, process] : totals_.processes_)
      writer_.Write(LabelsOf(process), {}, process.launches);
    writer_.Begin(kProcessCpuSeconds);
    for (const auto& [id, process] : totals_.processes_)
      writer_.Write(LabelsOf(process), {}, Seconds(process.cpu_ns));
    constexpr double kPercentOfAll = 100;
    for (const auto& [metric, family] :
         {std::pair(model::Metric::kOverheadBudget, &kProcessOverheadBudget),
          std::pair(model::Metric::kOverheadSpent, &kProcessOverheadSpent),
          std::pair(model::Metric::kOverheadCost, &kProcessOverheadCost),
          std::pair(model::Metric::kOverheadCostLow, &kProcessOverheadCostLow),
          std::pair(model::Metric::kOverheadCostHigh, &kProcessOverheadCostHigh)}) {
      writer_.Begin(*family);
      for (const auto& [id, process] : totals_.processes_)
        if (const auto reading = process.overhead.find(metric);
            reading != process.overhead.end() && now_ns_ - reading->second.read_ns <= kOverheadLastsNs)
          writer_.Write(LabelsOf(process), {}, reading->second.value / kPercentOfAll);
    }
  }

  void WriteMachine() {
    writer_.Begin(kIncidents);
    for (const auto& [cause, times] : totals_.incidents_) writer_.Write({}, {{"cause", cause}}, times);
    writer_.Begin(kIncidentsOpen);
    writer_.Write({}, {}, static_cast<int64_t>(totals_.open_incidents_.size()));
    writer_.Begin(kDropped);
    for (const model::DropInfo& drop : model::kDropReasons)
      writer_.Write({}, {{"reason", drop.name}}, totals_.drops_[static_cast<size_t>(drop.reason)]);
    writer_.Begin(kSamples);
    writer_.Write({}, {}, totals_.samples_);
    writer_.Begin(kProcessesOmitted);
    writer_.Write({}, {}, static_cast<int64_t>(totals_.omitted_.size()));
  }

  void WritePushed() {
    writer_.Begin(kOtlpItems);
    for (const auto& [signal, pushed] : totals_.pushed_)
      for (const auto& [outcome, items] :
           {std::pair("accepted", pushed.accepted), std::pair("dropped", pushed.dropped),
            std::pair("rejected", pushed.rejected)})
        writer_.Write({}, {{"signal", signal}, {"outcome", outcome}}, items);
    writer_.Begin(kOtlpRetries);
    for (const auto& [signal, pushed] : totals_.pushed_)
      writer_.Write({}, {{"signal", signal}}, pushed.retries);
    writer_.Begin(kOtlpWaiting);
    for (const auto& [signal, pushed] : totals_.pushed_)
      writer_.Write({}, {{"signal", signal}}, pushed.waiting);
    writer_.Begin(kOtlpLateRows);
    for (const auto& [signal, rows] : totals_.late_rows_) writer_.Write({}, {{"signal", signal}}, rows);
  }

  const LiveTotals& totals_;
  SeriesWriter& writer_;
  int64_t now_ns_;
  std::map<Id128, DeviceLabels> labels_;  // of devices that are named, and of the others
};

std::string LiveTotals::Render(Format format, int64_t now_ns, const OwnUse& own) const {
  TextWriter writer(format, &relabelling_);
  {
    const std::scoped_lock lock(mutex_);
    Exposition exposition(*this, writer, now_ns);
    exposition.WriteDcgm();
    exposition.WriteOwnFamilies(own);
  }
  return writer.Finish();
}

void LiveTotals::WriteOwnFamilies(SeriesWriter& writer, int64_t now_ns, const OwnUse& own) const {
  const std::scoped_lock lock(mutex_);
  Exposition(*this, writer, now_ns).WriteOwnFamilies(own);
}

}  // namespace gpusonde::exporters::prometheus
