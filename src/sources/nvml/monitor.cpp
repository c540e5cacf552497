// SPDX-License-Identifier: Apache-2.0
#include "sources/nvml/monitor.h"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "sources/nvml/hub.h"
#include "sources/nvml/poller.h"
#include "sources/nvml/xid_watcher.h"

namespace gpusonde::nvml {
namespace {

constexpr int64_t kStopTimeoutNs = 2 * kNanosPerSecond;

// NVML from nvmlInit to nvmlShutdown.
class Session {
 public:
  // Adds messages about single devices to `problems`. Errors: kUnavailable, kNotFound.
  static Result<std::unique_ptr<Session>> Begin(Library library, Hub& hub,
                                                std::vector<std::string>& problems) {
    if (const auto result = library.functions().init(); result != GPUSONDE_NVML_SUCCESS)
      return Fail(
          result == GPUSONDE_NVML_ERROR_DRIVER_NOT_LOADED ? ErrorCode::kNotFound : ErrorCode::kUnavailable,
          fmt::format("can't initialise NVML: {}", library.Explain(result)));
    std::unique_ptr<Session> session(new Session(std::move(library)));
    ASSIGN_OR_RETURN(const std::vector<Device> devices, ListDevices(session->library_, problems));
    session->places_ = hub.PlacesOf(devices);
    session->poller_.emplace(session->library_, devices);
    session->watcher_.emplace(session->library_, devices, session->places_, hub);
    return session;
  }

  ~Session() {
    watcher_.reset();
    poller_.reset();  // it holds samples of the library
    library_.functions().shutdown();
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  PollResult Round(int64_t period_ns) {
    PollResult polled;
    poller_->Round(period_ns, polled);
    for (Reading& reading : polled.readings) reading.device = places_[reading.device];
    return polled;
  }
  bool library_lost() const { return poller_->library_lost(); }
  // Whether a device was lost, or missing from the start.
  bool incomplete() const { return poller_->any_device_lost(); }

 private:
  explicit Session(Library library) : library_(std::move(library)) {}

  Library library_;
  std::vector<size_t> places_;
  std::optional<Poller> poller_;
  std::optional<XidWatcher> watcher_;
};

// The body of the reading thread. It shares ownership of the hub, as it may be abandoned.
class Reader {
 public:
  Reader(Monitor::Options options, std::shared_ptr<Hub> hub)
      : options_(std::move(options)), hub_(std::move(hub)), retry_ns_(options_.retry_ns) {}

  void Run(std::optional<Library> library) {
    while (!hub_->stopping()) {
      // Retry delay when NVML can't be initialised, or a device is missing.
      int64_t pause_ns = std::exchange(retry_ns_, std::min(2 * retry_ns_, options_.longest_retry_ns));
      if (const std::unique_ptr<Session> session = Begin(std::exchange(library, std::nullopt)))
        pause_ns = RunSession(*session, pause_ns);
      if (pause_ns > 0 && !hub_->Sleep(pause_ns)) break;
    }
    hub_->MarkDone();
  }

 private:
  std::unique_ptr<Session> Begin(std::optional<Library> opened) {
    std::vector<std::string> problems;
    Result<std::unique_ptr<Session>> session = Try(std::move(opened), problems);
    if (!session.has_value()) problems.push_back(session.error().message);
    // A machine without a driver is not an error.
    const bool is_problem = session.has_value() || session.error().code != ErrorCode::kNotFound;
    missing_ = !problems.empty();
    Report(problems, is_problem);
    return session.has_value() ? std::move(*session) : nullptr;
  }

  // Opens the library again each time, as a driver update replaces it.
  Result<std::unique_ptr<Session>> Try(std::optional<Library> opened, std::vector<std::string>& problems) {
    if (opened.has_value()) return Session::Begin(std::move(*opened), *hub_, problems);
    ASSIGN_OR_RETURN(Library library, options_.open());
    return Session::Begin(std::move(library), *hub_, problems);
  }

  // Reports the problems that are new.
  void Report(const std::vector<std::string>& problems, bool is_problem) {
    PollResult polled;
    if (problems.empty() && was_incomplete_) polled.notices.push_back({true, "all GPUs are read again"});
    for (const std::string& problem : problems)
      if (std::ranges::find(last_problems_, problem) == last_problems_.end())
        polled.notices.push_back({is_problem, problem});
    last_problems_ = problems;
    was_incomplete_ = !problems.empty() && is_problem;
    hub_->Publish(std::move(polled));
  }

  // Reads until Stop, or until NVML has to be initialised again; returns how long to wait before that.
  int64_t RunSession(Session& session, int64_t retry_ns) {
    const auto period_ns = static_cast<int64_t>(static_cast<double>(kNanosPerSecond) / options_.frequency_hz);
    std::optional<int64_t> give_up_ns;  // when to initialise NVML again because a device is lost
    for (int64_t next_ns = MonotonicNow(); !hub_->stopping();) {
      const int64_t begin_ns = MonotonicNow();
      hub_->Publish(session.Round(period_ns));
      if (session.library_lost()) {
        was_incomplete_ = true;
        return retry_ns;
      }
      const int64_t now_ns = MonotonicNow();
      if (!session.incomplete() && !missing_)
        retry_ns_ = options_.retry_ns;
      else if (!give_up_ns.has_value())
        give_up_ns = now_ns + retry_ns;
      was_incomplete_ |= session.incomplete();
      if (give_up_ns.has_value() && now_ns >= *give_up_ns) return 0;
      // Missed rounds are skipped, and at least half of the time no call is made to the driver.
      next_ns = std::max(next_ns + period_ns, now_ns + std::min(now_ns - begin_ns, period_ns));
      if (!hub_->Sleep(next_ns - now_ns)) break;
    }
    return 0;
  }

  Monitor::Options options_;
  std::shared_ptr<Hub> hub_;
  int64_t retry_ns_;  // the next retry delay
  std::vector<std::string> last_problems_;
  bool missing_ = false;         // a device is missing
  bool was_incomplete_ = false;  // a problem was reported, and its end not yet
};

}  // namespace

struct Monitor::State {
  std::shared_ptr<Hub> hub;
  model::DropCounts drops;  // of what was drained
  std::thread thread;

  ~State() { Stop(); }
  void Stop() {
    hub->Stop();
    if (!thread.joinable()) return;
    if (hub->WaitUntilDone(kStopTimeoutNs))
      thread.join();
    else
      thread.detach();
  }
};

Monitor::Monitor(std::unique_ptr<State> state) : state_(std::move(state)) {}
Monitor::Monitor(Monitor&&) noexcept = default;
Monitor& Monitor::operator=(Monitor&&) noexcept = default;
Monitor::~Monitor() = default;

Result<Monitor> Monitor::Start(Options options) {
  ASSIGN_OR_RETURN(Library library, options.open());
  auto hub = std::make_shared<Hub>();
  auto state = std::make_unique<State>();
  state->hub = hub;
  state->thread =
      std::thread([hub, options = std::move(options), library = std::optional(std::move(library))]() mutable {
        ::pthread_setname_np(::pthread_self(), "nvml");
        Reader(std::move(options), std::move(hub)).Run(std::exchange(library, std::nullopt));
      });
  return Monitor(std::move(state));
}

std::vector<Device> Monitor::devices() const { return state_->hub->devices(); }

Status Monitor::Drain(const Visit& visit) {
  PollResult polled = state_->hub->Drain();
  state_->drops.Merge(polled.drops);
  for (Notice& notice : polled.notices) visit(std::move(notice));
  for (const Reading& reading : polled.readings) visit(Reading(reading));
  return {};
}

model::DropCounts Monitor::DrainDrops() { return state_->drops.Take(); }
void Monitor::RequestStop() { state_->hub->Stop(); }
void Monitor::Stop() { state_->Stop(); }

}  // namespace gpusonde::nvml
