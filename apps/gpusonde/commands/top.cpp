// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "api_client.h"
#include "base/event_fd.h"
#include "base/terminal.h"
#include "base/text.h"
#include "base/time.h"
#include "messages.h"
#include "screen.h"
#include "stop_signal.h"
#include "top/render.h"
#include "top/snapshot.h"
#include "values.h"

namespace gpusonde::app {
namespace {

// A refresh costs the server CPU time: 0.16 s where it was measured (docs/top.md). At most a tenth of a core.
constexpr int64_t kPausePerCost = 9;
// How soon a stop or a new size of the terminal shows.
constexpr int64_t kLookNs = 200 * kNanosPerMilli;

struct TopFlags {
  std::string url = "http://127.0.0.1:7171";
  std::string host;
  ClientFlags client;
  std::string interval = "2s";
  std::string sort = "busy";
  bool once = false;
};

struct TopOptions {
  ApiServer server;
  int64_t interval_ns = 0;
  top::SortBy sort{};
  bool once = false;
};

// `cost_ns` grows by what it costs the server.
Result<top::Snapshot> Read(const TopOptions& options, int64_t& cost_ns) {
  const auto ask = [&](const std::string& target) -> Result<std::string> {
    ASSIGN_OR_RETURN(TimedAnswer answer, AskApiTimed(options.server, target));
    cost_ns += answer.cost_ns;
    return std::move(answer.body);
  };
  ASSIGN_OR_RETURN(top::Snapshot snapshot, top::ReadSnapshot(ask));
  if (snapshot.mode == "serve" && !snapshot.now_us.has_value() && options.server.host.empty())
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("this server has {}: choose one with --host", snapshot.title));
  return snapshot;
}

Status PrintOnce(const TopOptions& options) {
  int64_t cost_ns = 0;
  ASSIGN_OR_RETURN(const top::Snapshot snapshot, Read(options, cost_ns));
  const std::vector<std::string> lines = top::Render(
      snapshot,
      {.terminal = {.width = Terminal::Of(STDOUT_FILENO).width}, .sort = options.sort, .problem = {}});
  for (const std::string& line : lines) PrintTo(stdout, "{}\n", line);
  return {};
}

// Reads snapshots on a thread of its own, so that a server that hangs keeps no key waiting.
class Reader {
 public:
  explicit Reader(TopOptions options) : state_(std::make_shared<State>(std::move(options))) {
    std::thread([state = state_] { Run(*state); }).detach();  // it may hang in a name look-up
  }
  ~Reader() {
    const std::lock_guard lock(state_->mutex);
    state_->stop = true;
    state_->changed.notify_all();
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  // Signalled for each new snapshot, and for each failure.
  const EventFd& event() const { return state_->event; }

  // Updates the snapshot and why it isn't the newest. True if there is a newer one.
  bool Take(top::Snapshot& snapshot, std::string& problem) {
    state_->event.Clear();
    const std::lock_guard lock(state_->mutex);
    const bool newer = state_->snapshot.has_value();
    if (newer) snapshot = *std::exchange(state_->snapshot, std::nullopt);
    problem = state_->problem;
    return newer;
  }

 private:
  struct State {
    explicit State(TopOptions options_in) : options(std::move(options_in)) {}
    const TopOptions options;
    EventFd event;
    std::mutex mutex;  // guards what follows
    std::condition_variable changed;
    std::optional<top::Snapshot> snapshot;
    std::string problem;
    bool stop = false;
  };

  static void Run(State& state) {
    std::unique_lock lock(state.mutex);
    int64_t pause_ns = state.options.interval_ns;
    while (!state.changed.wait_for(lock, std::chrono::nanoseconds(pause_ns), [&] { return state.stop; })) {
      lock.unlock();
      int64_t cost_ns = 0;
      Result<top::Snapshot> snapshot = Read(state.options, cost_ns);
      pause_ns = std::max(state.options.interval_ns, kPausePerCost * cost_ns);
      lock.lock();
      state.problem = snapshot.has_value() ? "" : snapshot.error().message;
      state.problem.resize(std::min(state.problem.find('\n'), state.problem.size()));
      if (snapshot.has_value()) state.snapshot = *std::move(snapshot);
      state.event.Signal();
    }
  }

  const std::shared_ptr<State> state_;
};

// Returns false to quit.
bool Press(char key, top::SortBy& sort) {
  static const std::map<char, top::SortBy> kSortKeys = {{'b', top::SortBy::kBusy},
                                                        {'m', top::SortBy::kMemory},
                                                        {'k', top::SortBy::kKernels},
                                                        {'c', top::SortBy::kCpu}};
  if (const auto found = kSortKeys.find(key); found != kSortKeys.end()) sort = found->second;
  return key != 'q' && key != 'Q';
}

Status Show(const TopOptions& options) {
  int64_t cost_ns = 0;
  ASSIGN_OR_RETURN(top::Snapshot snapshot, Read(options, cost_ns));
  CatchStopSignals();  // before that, nothing needs to be restored, and the server may not answer
  const bool colour = Terminal::Of(STDOUT_FILENO).colour;
  top::SortBy sort = options.sort;
  std::string problem;
  Reader reader(options);
  Screen screen;
  Screen::Size drawn{0, 0};
  int64_t read_ns = MonotonicNow(), shown_age_s = 0;
  for (bool fresh = true; !StopRequested();) {
    if (const Screen::Size size = screen.size(); fresh || size != drawn) {
      screen.Draw(top::Render(snapshot, {.terminal = {.colour = colour, .width = size.columns},
                                         .height = size.rows,
                                         .sort = sort,
                                         .problem = problem,
                                         .age_s = shown_age_s}));
      drawn = size;
    }
    const std::optional<char> key = screen.Wait(reader.event(), kLookNs);
    if (key.has_value() && !Press(*key, sort)) break;
    const int64_t shown_us = snapshot.now_us.value_or(0);
    const std::string shown_problem = problem;
    if (reader.Take(snapshot, problem)) read_ns = MonotonicNow();
    const int64_t age_s = (MonotonicNow() - read_ns) / kNanosPerSecond;
    fresh = key.has_value() || snapshot.now_us.value_or(0) != shown_us || problem != shown_problem ||
            (age_s != shown_age_s && std::max(age_s, shown_age_s) >= top::kOldS);
    shown_age_s = age_s;
  }
  return {};
}

// A whole screen can be drawn again and again.
bool IsScreen() {
  const char* term = std::getenv("TERM");
  return ::isatty(STDOUT_FILENO) != 0 && term != nullptr && *term != '\0' && std::string_view(term) != "dumb";
}

int Top(const TopOptions& options) {
  return ExitStatusOf("top", options.once || !IsScreen() ? PrintOnce(options) : Show(options));
}

// "2s", "0.5s", "500ms" or "2"; at least 100 ms and at most an hour.
Result<int64_t> ParseInterval(std::string_view text) {
  std::string_view number = text;
  double unit_ns = kNanosPerSecond;
  if (number.ends_with("ms")) {
    unit_ns = kNanosPerMilli;
    number.remove_suffix(2);
  } else if (number.ends_with("s")) {
    number.remove_suffix(1);
  }
  const double ns = ParseNumber<double>(number).value_or(0) * unit_ns;
  if (ns >= 1e8 && ns <= 3.6e12) return static_cast<int64_t>(ns);
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("'{}' is not a time from 100ms to 3600s, such as 2s or 500ms", text));
}

}  // namespace

void AddTop(CLI::App& app, int& exit_status) {
  auto flags = std::make_shared<TopFlags>();
  CLI::App* command =
      app.add_subcommand("top", "Show GPUs and the processes that use them in the terminal, while `up` runs");
  command->footer(
      "Examples:\n"
      "  gpusonde top\n"
      "  gpusonde top --once --sort memory\n"
      "  gpusonde top --url http://127.0.0.1:7171 --host node-3      # a host of `gpusonde serve`\n\n"
      "Keys: q quits; b, m, k and c sort by busy time, memory, kernels per second and CPU time. If standard\n"
      "output is not a terminal, it is as with --once. docs/top.md explains the columns.");
  command->add_option("--url", flags->url, "http[s]://HOST[:PORT] of `gpusonde up` or `serve`")
      ->capture_default_str();
  AddClientFlags(*command, "--url", flags->client);
  command->add_option("--host", flags->host, "Which host of `gpusonde serve` [the only one]");
  command->add_option("--interval", flags->interval, "Shortest time between refreshes, such as 2s or 500ms")
      ->capture_default_str();
  command->add_option("--sort", flags->sort, "What processes are sorted by: busy, memory, kernels or cpu")
      ->capture_default_str()
      ->check(OneOf({std::begin(top::kSortNames), std::end(top::kSortNames)}));
  command->add_flag("--once", flags->once, "Print one table and end");
  command->callback([flags, &exit_status] {
    TopOptions options{.server = ParseApiServer("--url", flags->url, flags->host, flags->client),
                       .once = flags->once};
    const auto interval = ParseInterval(flags->interval);
    if (!interval.has_value()) throw CLI::ValidationError("--interval", interval.error().message);
    options.interval_ns = *interval;
    for (size_t i = 0; i < std::size(top::kSortNames); ++i)
      if (top::kSortNames[i] == flags->sort) options.sort = static_cast<top::SortBy>(i);
    exit_status = Top(options);
  });
}

}  // namespace gpusonde::app
