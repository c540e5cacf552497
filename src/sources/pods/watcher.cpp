// SPDX-License-Identifier: Apache-2.0
#include "sources/pods/watcher.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <set>
#include <stop_token>
#include <system_error>
#include <thread>
#include <utility>

#include "base/log.h"

namespace gpusonde::pods {
namespace {

// One server: when it is asked next, and whether it answers.
class Service {
 public:
  Service(std::string_view name, const Watcher::Options& options) : name_(name), options_(options) {}

  int64_t next_ns() const { return next_ns_; }
  // A server that fails keeps its delay.
  void PollSoon(int64_t now_ns) {
    if (failures_ == 0)
      next_ns_ = std::min(next_ns_, std::max(asked_ns_ + options_.urgent_interval_ns, now_ns));
  }

  // Notes the outcome of asking at `now_ns`. A machine may rightly lack a server that isn't expected there.
  void Note(const Status& outcome, const std::string& socket, int64_t now_ns, bool expected) {
    asked_ns_ = now_ns;
    if (outcome.has_value()) {
      if (warned_) LogWarn("{} answers again at {}", name_, socket);
      answered_ = true;
      warned_ = false;
      failures_ = 0;
      next_ns_ = now_ns + options_.period_ns;
      return;
    }
    const bool is_absent = !answered_ && (!expected || outcome.error().code == ErrorCode::kNotFound);
    if (!warned_ && !is_absent) {
      LogWarn("{} does not answer at {}: {}; trying again", name_, socket, outcome.error().message);
      warned_ = true;
    }
    next_ns_ = now_ns +
               std::min(options_.period_ns << std::min(failures_, kMaxDoublings), options_.longest_retry_ns);
    ++failures_;
  }

  // Warns when replies begin to be beyond the limits.
  void NoteOmitted(int64_t omitted) {
    if (omitted > 0 && omitted_ == 0)
      LogWarn("{}: {} entries of its reply are beyond the limits and left out", name_, omitted);
    omitted_ = omitted;
  }

 private:
  static constexpr int kMaxDoublings = 10;

  std::string_view name_;
  const Watcher::Options& options_;
  int64_t asked_ns_ = 0;
  int64_t next_ns_ = 0;
  int failures_ = 0;
  bool answered_ = false;
  bool warned_ = false;
  int64_t omitted_ = 0;
};

bool Exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

// The first socket that exists; the first of all if none does.
std::string ExistingOf(const std::vector<std::string>& sockets) {
  const auto found = std::ranges::find_if(sockets, Exists);
  return found == sockets.end() ? sockets.front() : *found;
}

}  // namespace

struct Watcher::State {
  Options options;
  std::mutex mutex{};  // guards what follows, up to `containers`
  std::condition_variable_any wake{};
  bool urgent = false;
  std::optional<DevicesAt> devices{};
  std::optional<PodContainers> containers{};
  // Of the thread alone.
  std::optional<PodDevices> listed{};  // by kubelet
  std::set<PodName> ended{};           // by the runtime
  std::jthread thread{};

  void Run(const std::stop_token& stop);
  void AskKubelet(Service& kubelet, const std::stop_token& stop);
  void AskRuntime(Service& runtime, const std::stop_token& stop);
  void PublishDevices(int64_t now_ns);
};

void Watcher::State::Run(const std::stop_token& stop) {
  Service kubelet("kubelet's pod-resources API", options);
  Service runtime("the container runtime", options);
  while (!stop.stop_requested()) {
    if (!options.kubelet_socket.empty() && MonotonicNow() >= kubelet.next_ns()) AskKubelet(kubelet, stop);
    if (!options.runtime_sockets.empty() && MonotonicNow() >= runtime.next_ns()) AskRuntime(runtime, stop);
    std::unique_lock lock(mutex);
    if (std::exchange(urgent, false)) {
      const int64_t now_ns = MonotonicNow();
      kubelet.PollSoon(now_ns);
      runtime.PollSoon(now_ns);
    }
    const int64_t next_ns = std::min(options.kubelet_socket.empty() ? INT64_MAX : kubelet.next_ns(),
                                     options.runtime_sockets.empty() ? INT64_MAX : runtime.next_ns());
    const int64_t wait_ns = std::min(next_ns - MonotonicNow(), options.longest_retry_ns);
    if (wait_ns > 0) wake.wait_for(lock, stop, std::chrono::nanoseconds(wait_ns), [this] { return urgent; });
  }
}

void Watcher::State::AskKubelet(Service& kubelet, const std::stop_token& stop) {
  Result<PodDevices> found = ListPodDevices(options.kubelet_socket, options.timeout_ns, stop);
  if (stop.stop_requested()) return;
  const int64_t now_ns = MonotonicNow();
  kubelet.Note(found.has_value() ? Status() : Fail(found.error()), options.kubelet_socket, now_ns, true);
  if (!found.has_value()) return;
  kubelet.NoteOmitted(found->omitted);
  listed = *std::move(found);
  PublishDevices(now_ns);
}

void Watcher::State::PublishDevices(int64_t now_ns) {
  PodDevices lasting = *listed;
  std::erase_if(lasting.devices,
                [&](const PodDevice& device) { return ended.contains({device.pod_namespace, device.pod}); });
  const std::scoped_lock lock(mutex);
  devices = DevicesAt{std::move(lasting), now_ns};
}

void Watcher::State::AskRuntime(Service& runtime, const std::stop_token& stop) {
  const std::string socket = ExistingOf(options.runtime_sockets);
  Result<PodContainers> found = ListContainers(socket, options.labels, options.timeout_ns, stop);
  if (stop.stop_requested()) return;
  // Docker's containerd has no CRI on many machines. Only where there is a kubelet, too, or the user named
  // the socket, it should have one.
  const bool expected = options.runtime_sockets.size() == 1 || Exists(options.kubelet_socket);
  runtime.Note(found.has_value() ? Status() : Fail(found.error()), socket, MonotonicNow(), expected);
  if (!found.has_value()) return;
  runtime.NoteOmitted(found->omitted);
  if (found->ended_pods != ended) {
    ended = found->ended_pods;
    if (listed.has_value()) PublishDevices(MonotonicNow());
  }
  const std::scoped_lock lock(mutex);
  containers = *std::move(found);
}

Watcher::Watcher(std::unique_ptr<State> state) : state_(std::move(state)) {}

std::unique_ptr<Watcher> Watcher::Start(Options options) {
  std::unique_ptr<State> state(new State{.options = std::move(options)});
  try {
    state->thread =
        std::jthread([running = state.get()](const std::stop_token& stop) { running->Run(stop); });
  } catch (const std::system_error& error) {
    LogWarn("pods are not read: can't start a thread: {}", error.what());
    return nullptr;
  }
  return std::unique_ptr<Watcher>(new Watcher(std::move(state)));
}

std::optional<Watcher::DevicesAt> Watcher::DrainDevices() {
  const std::scoped_lock lock(state_->mutex);
  return std::exchange(state_->devices, std::nullopt);
}

std::optional<PodContainers> Watcher::DrainContainers() {
  const std::scoped_lock lock(state_->mutex);
  return std::exchange(state_->containers, std::nullopt);
}

void Watcher::PollSoon() {
  {
    const std::scoped_lock lock(state_->mutex);
    state_->urgent = true;
  }
  state_->wake.notify_one();
}

// The thread stops first, being the last member.
Watcher::~Watcher() = default;

}  // namespace gpusonde::pods
