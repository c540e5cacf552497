// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "agent/live_agent.h"
#include "base/counted.h"
#include "base/fd.h"
#include "base/heap.h"
#include "base/log.h"
#include "base/state_folder.h"
#include "base/time.h"
#include "browser.h"
#include "exporters/prometheus/live_totals.h"
#include "listen_flags.h"
#include "live_flags.h"
#include "messages.h"
#include "otlp/late_rows.h"
#include "otlp_flags.h"
#include "replay/recall.h"
#include "server/metrics_server.h"
#include "server/ui_server.h"
#include "sources/cupti/inject_library.h"
#include "sources/proc/process.h"
#include "stop_signal.h"
#include "store/live/live_store.h"
#include "store/memory_limit.h"
#include "values.h"

namespace gpusonde::app {
namespace {

constexpr int64_t kRetainEveryNs = 600 * kNanosPerSecond;

struct UpOptions {
  std::string state = DefaultStateFolder();
  std::string listen;  // empty: the default ports
  std::vector<std::string> sources;
  LiveFlags live;
  int days = 7;
  double gigabytes = 10;
  bool no_open = false;
  std::string metrics_listen;  // empty: only at the UI's address
  std::optional<server::ListenAddress> metrics;
  std::string relabel;  // file with rules; empty: none
  exporters::prometheus::Relabelling relabelling;
  ListenFlags protection;
};

// Writes the agent's data straight to the embedded store, and counts rows that come too late to be sent.
class StoreSink : public agent::Sink {
 public:
  StoreSink(store::LiveStore& store, otlp::LateRows& late, exporters::prometheus::LiveTotals& totals)
      : store_(store), late_(late), totals_(totals) {}

  Result<int64_t> CommittedThrough(const Id128& spool) override { return store_.CommittedThrough(spool); }

  Status Ingest(const Id128& spool, int64_t day, int64_t first_sequence,
                std::vector<model::Batch> frames) override {
    late_.Count(frames);
    if (const int64_t rows = late_.count(); rows > 0) totals_.SetLateRows("profiles", rows);
    return store_.Hold(store::Day(std::chrono::days(day)), spool, first_sequence, std::move(frames));
  }

  Status Flush() override { return store_.CommitHeld(); }
  Loss TakeLoss() override { return {.names = store_.TakeGap()}; }

 private:
  store::LiveStore& store_;
  otlp::LateRows& late_;
  exporters::prometheus::LiveTotals& totals_;
};

// Explains on the page why the agent can't store rows. The agent sets it, the server's threads read it.
class AgentNotice {
 public:
  void Set(const std::string& problem) {
    const std::scoped_lock lock(mutex_);
    text_ = problem.empty() ? "" : fmt::format("Rows are dropped or wait to be stored: {}.", problem);
  }
  std::string Get() const {
    const std::scoped_lock lock(mutex_);
    return text_;
  }

 private:
  mutable std::mutex mutex_;
  std::string text_;
};

void Retain(store::LiveStore& store, const UpOptions& options) {
  const auto gone = store.Retain(options.days, static_cast<int64_t>(options.gigabytes * 1e9));
  if (!gone.has_value())
    LogError("can't delete days past retention: {}", gone.error().message);
  else if (*gone > 0)
    LogInfo("retention: deleted {} old days", *gone);
}

Status RunUp(const UpOptions& options, const std::optional<server::ListenAddress>& listen) {
  CatchStopSignals();  // before creating anything that a signal could leave unfinished
  ReturnMemoryEarly();
  // `up` runs all the time, and DuckDB caches what it has read until it reaches the limit.
  if (!store::MemoryLimitIsSet()) store::SetMemoryLimit(store::kMinMemoryLimit);
  ASSIGN_OR_RETURN(const server::Guard guard, OpenGuard(options.protection));
  TRY(MakeFolder(options.state));
  const auto reserve_bytes = static_cast<int64_t>(options.live.reserve_mb * 1e6);
  ASSIGN_OR_RETURN(const auto store,
                   store::LiveStore::Open(options.state + "/days", {.min_free_bytes = reserve_bytes}));
  exporters::prometheus::LiveTotals totals(options.relabelling);
  otlp::LateRows late;
  StoreSink sink(*store, late, totals);
  AgentNotice agent_notice;
  const auto notices = [&store, &agent_notice] {
    std::vector<std::string> all = store->notices();
    // If the store has a problem, the agent reports it too, but the store's text explains it better.
    if (const std::string text = agent_notice.Get(); all.empty() && !text.empty()) all.push_back(text);
    return all;
  };
  agent::LiveAgent::Options agent_options = AgentOptions(options.live, proc::ReadHost().name);
  agent_options.spool_folder = options.state + "/spool";
  // The spool may use this half of the reserve when the store refuses rows.
  agent_options.min_free_bytes = reserve_bytes / 2;
  agent_options.on_problem = [&agent_notice](const std::string& text) { agent_notice.Set(text); };
  agent_options.on_rows = [&totals](std::span<const model::Batch> rows) {
    totals.Ingest(rows, MonotonicNow());
  };
  agent_options.recall = [&store](diagnose::Diagnosis& diagnosis) {
    return replay::Recall(
        *store, MonotonicNow() + MeasureEpochOffset(),
        [](const model::Process& process) { return proc::StillRuns(process.process, process.pid); },
        diagnosis);
  };
  ASSIGN_OR_RETURN(agent::LiveAgent agent, agent::LiveAgent::Create(agent_options, sink));
  ASSIGN_OR_RETURN(server::SourceFolders sources, server::SourceFolders::Open(options.sources));
  const std::optional<std::string> library = cupti::FindInjectLibrary();
  ASSIGN_OR_RETURN(
      const auto server,
      server::UiServer::Start(*store,
                              {.mode = "up",
                               .live = true,
                               .title = "this machine",
                               .inject_library = library,
                               .notices = notices,
                               .metrics = server::MetricsHandler(totals),
                               .sources = std::make_shared<server::SourceFolders>(std::move(sources))},
                              listen, guard));
  if (!server->remark().empty()) PrintNotice("up", server->remark());
  PrintTo(stdout, "sampling this machine at {:g} Hz into {}\nthe UI is at {} (press Ctrl-C to stop)\n",
          options.live.frequency_hz, options.state,
          PlaceOf(server->Url(), listen.value_or(server::ListenAddress())));
  FlushOutput();
  std::unique_ptr<server::MetricsServer> metrics;
  if (options.metrics.has_value()) {
    ASSIGN_OR_RETURN(metrics,
                     server::MetricsServer::Start(totals, {.listen = *options.metrics, .guard = guard}));
    PrintTo(stdout, "metrics for Prometheus are at {}\n", PlaceOf(metrics->Url(), *options.metrics));
  }
  if (library.has_value())
    PrintTo(stdout,
            "CUDA programs are profiled that start with\n"
            "  CUDA_INJECTION64_PATH={0} NVTX_INJECTION64_PATH={0}\n",
            *library);
  FlushOutput();
  if (!options.no_open) OpenInBrowser(server->Url());

  ASSIGN_OR_RETURN(const auto metrics_push, PushMetrics(options.live.otlp, totals));
  const auto profiles_push = PushProfiles(options.live.otlp, *store, late, totals);

  int64_t retained_ns = 0;
  TRY(RunAgent(agent, options.live, [&] {
    if (MonotonicNow() - retained_ns < kRetainEveryNs) return;
    retained_ns = MonotonicNow();
    Retain(*store, options);
  }));
  // A receiver that is dead is waited for once.
  if (metrics_push != nullptr) metrics_push->BeginFinish();
  if (profiles_push != nullptr) profiles_push->Finish();
  if (late.count() > 0)
    LogInfo("otlp: {} arrived too late for the profiles already sent", Counted(late.count(), "row"));
  if (metrics_push != nullptr) metrics_push->Finish();
  return {};
}

// Throws CLI::ValidationError.
exporters::prometheus::Relabelling ReadRules(const std::string& path) {
  constexpr size_t kMaxBytes = size_t{1} << 20;
  const auto text = ReadFile(path, kMaxBytes);
  if (!text.has_value()) throw CLI::ValidationError("--relabel", text.error().message);
  auto rules = exporters::prometheus::Relabelling::Parse(*text);
  if (!rules.has_value())
    throw CLI::ValidationError("--relabel", fmt::format("{}: {}", path, rules.error().message));
  return *std::move(rules);
}

}  // namespace

void AddUp(CLI::App& app, int& exit_status) {
  auto options = std::make_shared<UpOptions>();
  CLI::App* command =
      app.add_subcommand("up", "Profile this machine continuously and show it in the browser");
  command->footer(
      "Examples:\n"
      "  gpusonde up\n"
      "  gpusonde up --state /data/gpusonde --days 30 --max-gb 50 --no-open\n\n"
      "Keeps one file per day under STATE/days; any DuckDB client can read them while gpusonde is stopped.");
  command->add_option("--state", options->state, "Folder for the data")->check(Path())->capture_default_str();
  AddLiveFlags(*command, options->live);
  AddOtlpProfilesFlag(*command, options->live.otlp);
  command->add_option("--days", options->days, "Retention in days")
      ->capture_default_str()
      ->check(WholeNumber("N", 1, 1'000'000));
  command->add_option("--max-gb", options->gigabytes, "Retention in gigabytes")
      ->capture_default_str()
      ->check(PositiveNumber("GB"));
  command->add_option(
      "--listen", options->listen,
      fmt::format(
          "IP:PORT to listen on; port 0: any free port [127.0.0.1:{}, or the next free port up to {}]",
          server::kDefaultPort, server::kLastDefaultPort));
  command
      ->add_option("--sources", options->sources,
                   "Folders whose source files the UI may show, except hidden ones [none]")
      ->check(Path())
      ->allow_extra_args(false);
  AddListenFlags(*command, options->protection);
  command->add_option("--metrics-listen", options->metrics_listen,
                      "IP:PORT of another address for /metrics alone, for tokens of scope metrics [none]");
  command
      ->add_option("--relabel", options->relabel,
                   "JSON file with rules that change the labels of /metrics; docs/metrics.md has them [none]")
      ->check(Path());
  command->add_flag("--no-open", options->no_open, "Don't open a browser");
  command->callback([command, options, &exit_status] {
    std::optional<server::ListenAddress> listen;
    if (command->count("--listen") > 0)
      listen = ParseListen("--listen", options->listen, options->protection);
    if (command->count("--metrics-listen") > 0)
      options->metrics = ParseListen("--metrics-listen", options->metrics_listen, options->protection);
    CheckLiveFlags(options->live);
    if (!options->relabel.empty()) options->relabelling = ReadRules(options->relabel);
    exit_status = ExitStatusOf("up", RunUp(*options, listen));
  });
}

}  // namespace gpusonde::app
