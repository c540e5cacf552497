// SPDX-License-Identifier: Apache-2.0
#include "agent/engine.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <utility>

#include "agent/container_rows.h"
#include "agent/device_table.h"
#include "agent/diagnostician.h"
#include "agent/gpu_monitor.h"
#include "agent/pod_device_rows.h"

namespace gpusonde::agent {
namespace {

void Append(std::vector<model::Batch> more, std::vector<model::Batch>& batches) {
  std::ranges::move(more, std::back_inserter(batches));
}

void Append(std::optional<model::Batch> more, std::vector<model::Batch>& batches) {
  if (more.has_value()) batches.push_back(*std::move(more));
}

Result<Collector> StartCollector(const Engine::Options& options, bool with_kernel, int64_t epoch_offset_ns,
                                 std::shared_ptr<DeviceTable> devices) {
  return Collector::Create({.frequency_hz = options.frequency_hz,
                            .every_process = options.every_process,
                            .with_kernel = with_kernel,
                            .overhead = options.overhead,
                            .host = options.host,
                            .command = options.command,
                            .epoch_offset_ns = epoch_offset_ns,
                            .devices = std::move(devices),
                            .lines = options.lines,
                            .files = options.files});
}

}  // namespace

struct Engine::State {
  Options options;
  std::string refusal;
  int64_t epoch_offset_ns;
  std::shared_ptr<DeviceTable> devices;
  Collector collector;
  spool::Writer spool;
  PodDeviceRows pod_devices;
  ContainerRows containers = {};
  std::unique_ptr<pods::Watcher> pod_watcher = nullptr;
  std::optional<Diagnostician> diagnostician;
  std::optional<GpuMonitor> gpus;

  void AppendPods(std::vector<model::Batch>& batches);
};

// Adds rows for the containers of the processes in these batches, and for the GPUs of pods.
void Engine::State::AppendPods(std::vector<model::Batch>& batches) {
  for (const model::Batch& batch : batches) containers.Ingest(batch);
  if (pod_watcher != nullptr) {
    if (auto found = pod_watcher->DrainContainers(); found.has_value()) containers.Update(*std::move(found));
    if (containers.TakeUnknown()) pod_watcher->PollSoon();
    if (const auto allocated = pod_watcher->DrainDevices(); allocated.has_value()) {
      pod_devices.Update(allocated->found, allocated->time_ns);
      containers.Include(allocated->found, collector.source());
    }
  }
  Append(containers.DrainRows(), batches);
  Append(containers.DrainLabels(), batches);
  Append(pod_devices.DrainRows(), batches);
}

Engine::Engine(std::unique_ptr<State> state) : state_(std::move(state)) {}
Engine::Engine(Engine&&) noexcept = default;
Engine& Engine::operator=(Engine&&) noexcept = default;
Engine::~Engine() = default;

Result<Engine> Engine::Create(Options options) {
  const int64_t epoch_offset_ns = options.measure_epoch_offset();
  const auto devices = std::make_shared<DeviceTable>();
  Result<Collector> created = StartCollector(options, true, epoch_offset_ns, devices);
  std::string refusal;
  if (!created.has_value() && options.may_lack_kernel(created.error())) {
    refusal = created.error().message;
    created = StartCollector(options, false, epoch_offset_ns, devices);
  }
  ASSIGN_OR_RETURN(Collector collector, std::move(created));
  ASSIGN_OR_RETURN(spool::Writer spool, spool::Writer::Open(options.spool_folder, options.spool));
  std::optional<Diagnostician> diagnostician;
  if (options.diagnose)
    diagnostician.emplace(Diagnostician::Options{.source = collector.source(),
                                                 .epoch_offset_ns = epoch_offset_ns,
                                                 .with_kernel = refusal.empty(),
                                                 .ends_incidents = options.ends_incidents,
                                                 .on_incident = options.on_incident,
                                                 .on_warning = options.on_warning});
  return Engine(std::unique_ptr<State>(new State{.options = std::move(options),
                                                 .refusal = std::move(refusal),
                                                 .epoch_offset_ns = epoch_offset_ns,
                                                 .devices = devices,
                                                 .collector = std::move(collector),
                                                 .spool = std::move(spool),
                                                 .pod_devices = PodDeviceRows(devices),
                                                 .diagnostician = std::move(diagnostician),
                                                 .gpus = std::nullopt}));
}

void Engine::StartGpuMonitor() {
  if (state_->options.nvml_hz <= 0) return;
  state_->gpus = GpuMonitor::Start({.frequency_hz = state_->options.nvml_hz}, state_->devices);
  if (state_->gpus.has_value()) state_->gpus->SetSource(state_->collector.source(), state_->epoch_offset_ns);
}

void Engine::StartPodWatcher() {
  if (!state_->options.pod_watcher.has_value()) return;
  state_->pod_devices.SetSource(state_->collector.source(), state_->epoch_offset_ns);
  state_->pod_watcher = pods::Watcher::Start(*state_->options.pod_watcher);
}

void Engine::Recall(const std::function<Status(diagnose::Diagnosis&)>& earlier) {
  if (state_->diagnostician.has_value()) state_->diagnostician->Recall(earlier);
}

Collector& Engine::collector() { return state_->collector; }
spool::Writer& Engine::spool() { return state_->spool; }
const std::string& Engine::refusal() const { return state_->refusal; }
int64_t Engine::epoch_offset_ns() const { return state_->epoch_offset_ns; }

Result<std::vector<model::Batch>> Engine::Gather() {
  std::vector<model::Batch> batches;
  if (state_->gpus.has_value()) batches = state_->gpus->Poll();
  ASSIGN_OR_RETURN(std::vector<model::Batch> collected, state_->collector.Poll());
  Append(std::move(collected), batches);
  state_->AppendPods(batches);  // incidents name containers
  if (state_->diagnostician.has_value()) Append(state_->diagnostician->Round(batches), batches);
  return batches;
}

Result<std::vector<model::Batch>> Engine::Finish(const std::function<bool()>& may_wait) {
  if (state_->gpus.has_value()) state_->gpus->RequestStop();
  ASSIGN_OR_RETURN(std::vector<model::Batch> collected, state_->collector.Finish(may_wait));
  std::vector<model::Batch> batches;
  if (state_->gpus.has_value()) batches = state_->gpus->Finish();
  Append(std::move(collected), batches);
  state_->AppendPods(batches);
  if (state_->diagnostician.has_value()) Append(state_->diagnostician->Finish(batches), batches);
  return batches;
}

spool::Writer::Stored Engine::Spool(std::span<const model::Batch> batches, size_t room) {
  const size_t fitting = std::min(room, batches.size());
  spool::Writer::Stored stored = state_->spool.Store(batches.first(fitting));
  for (const model::Batch& batch : batches.subspan(fitting))
    stored.lost_rows += static_cast<int64_t>(batch.rows);
  if (stored.lost_rows > 0) {
    state_->collector.CountLostRows(model::DropReason::kSpoolFailed, stored.lost_rows);
    Rewrite();
  }
  return stored;
}

void Engine::Rewrite() {
  state_->containers.Rewrite();
  state_->pod_devices.Rewrite();
  state_->collector.Rewrite();
  if (state_->gpus.has_value()) state_->gpus->Rewrite();
  if (state_->diagnostician.has_value()) state_->diagnostician->Rewrite();
}

int64_t Engine::MeasureClockStep() const {
  const int64_t step_ns = state_->options.measure_epoch_offset() - state_->epoch_offset_ns;
  return std::abs(step_ns) > kClockStepNs ? step_ns : 0;
}

Status Engine::BeginSource(const std::function<bool()>& may_wait,
                           const std::function<void(std::vector<model::Batch>)>& write) {
  if (state_->diagnostician.has_value()) write(state_->diagnostician->EndSource());
  const int64_t epoch_offset_ns = state_->options.measure_epoch_offset();
  if (state_->gpus.has_value()) write(state_->gpus->Poll());
  ASSIGN_OR_RETURN(std::vector<model::Batch> last, state_->collector.Finish(may_wait));
  write(std::move(last));
  ASSIGN_OR_RETURN(state_->collector, StartCollector(state_->options, state_->refusal.empty(),
                                                     epoch_offset_ns, state_->devices));
  const Id128 source = state_->collector.source();
  if (state_->gpus.has_value()) state_->gpus->SetSource(source, epoch_offset_ns);
  state_->pod_devices.SetSource(source, epoch_offset_ns);
  if (state_->diagnostician.has_value()) state_->diagnostician->SetSource(source, epoch_offset_ns);
  state_->epoch_offset_ns = epoch_offset_ns;
  return {};
}

}  // namespace gpusonde::agent
