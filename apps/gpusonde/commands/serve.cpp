// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "base/heap.h"
#include "base/log.h"
#include "base/open_files.h"
#include "base/state_folder.h"
#include "base/time.h"
#include "listen_flags.h"
#include "live_flags.h"
#include "messages.h"
#include "serve/hosts.h"
#include "serve/hosts_api.h"
#include "serve/ingest.h"
#include "serve/metrics.h"
#include "server/http_server.h"
#include "server/sql_post.h"
#include "server/ui_server.h"
#include "serving.h"
#include "stop_signal.h"
#include "store/memory_limit.h"
#include "values.h"

namespace gpusonde::app {
namespace {

constexpr int64_t kRetainHostsEveryNs = 600 * kNanosPerSecond;
constexpr int64_t kLimitMemoryEveryNs = 5 * kNanosPerSecond;
// Of each host: its lock, a file and a log for each of its days, and as much again.
constexpr int64_t kFilesOfAHost = 20;

// A quarter of what this process may use: the page cache, and queries that are under way, need some of the
// rest.
int64_t DefaultMemoryBytes() { return store::UsableMemory() / 4; }

struct ServeFlags {
  std::string state = DefaultStateFolder();
  std::string listen = "127.0.0.1:7272";
  std::string pages;  // empty: the default ports
  ListenFlags protection;
  std::string client_ca;
  int max_hosts = 256;
  int days = 7;
  double gigabytes = 10;
  double reserve_mb = 256;
  double memory_mb = static_cast<double>(DefaultMemoryBytes()) / 1e6;
};

Status RunServe(const ServeFlags& flags, const server::ListenAddress& listen,
                const std::optional<server::ListenAddress>& pages) {
  CatchStopSignals();
  ReturnMemoryEarly();
  // Of each host's store.
  if (!store::MemoryLimitIsSet()) store::SetMemoryLimit(store::kMinMemoryLimit);
  ASSIGN_OR_RETURN(const server::Guard guard, OpenGuard(flags.protection));
  server::Guard agents_guard{.tls = guard.tls, .access = guard.access};
  if (!flags.client_ca.empty()) {
    ASSIGN_OR_RETURN(agents_guard.tls, server::Tls::Open({.certificate = flags.protection.certificate,
                                                          .key = flags.protection.key,
                                                          .client_ca = flags.client_ca}));
  }
  TRY(MakeFolder(flags.state));
  if (const int64_t files = RaiseOpenFiles(); files < flags.max_hosts * kFilesOfAHost)
    LogWarn("{} files may be open (ulimit -Hn), enough for {} hosts", files, files / kFilesOfAHost);
  ASSIGN_OR_RETURN(const std::unique_ptr<serve::Hosts> hosts,
                   serve::Hosts::Open({.folder = flags.state + "/hosts",
                                       .min_free_bytes = static_cast<int64_t>(flags.reserve_mb * 1e6),
                                       .max_hosts = static_cast<size_t>(flags.max_hosts),
                                       .max_days = flags.days,
                                       .max_bytes = static_cast<int64_t>(flags.gigabytes * 1e9)}));
  serve::IngestCounts counts;
  ASSIGN_OR_RETURN(const std::unique_ptr<server::HttpServer> ingest,
                   server::HttpServer::Create({.listen = listen, .guard = agents_guard},
                                              serve::IngestRoutes(*hosts, counts)));
  serve::QueryTimes times;
  const auto api = serve::Timing(serve::HostsApi(*hosts, counts,
                                                 serve::MetricsHandler({.hosts = *hosts,
                                                                        .ingest = counts,
                                                                        .queries = times,
                                                                        .agents = *agents_guard.counts,
                                                                        .pages = *guard.counts,
                                                                        .tls = guard.tls.get(),
                                                                        .access = guard.access.get()})),
                                 times);
  ASSIGN_OR_RETURN(const std::unique_ptr<server::UiServer> ui,
                   server::UiServer::Start(api, pages, guard, server::AnsweringSqlPosts(api)));
  const Serving serving(*ingest);
  if (!ui->remark().empty()) PrintNotice("serve", ui->remark());
  PrintTo(stdout, "agents send to {}, stored in {}\nthe UI is at {} (press Ctrl-C to stop)\n",
          PlaceOf(ingest->Url(), listen), flags.state,
          PlaceOf(ui->Url(), pages.value_or(server::ListenAddress())));
  FlushOutput();
  int64_t retained_ns = 0, limited_ns = 0;
  while (!StopRequested()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    if (MonotonicNow() - limited_ns >= kLimitMemoryEveryNs) {
      limited_ns = MonotonicNow();
      hosts->LimitMemory(static_cast<int64_t>(flags.memory_mb * 1e6));
    }
    if (retained_ns != 0 && MonotonicNow() - retained_ns < kRetainHostsEveryNs) continue;
    retained_ns = MonotonicNow();
    hosts->Retain(EpochNow(), StopRequested);
  }
  return {};
}

}  // namespace

void AddServe(CLI::App& app, int& exit_status) {
  auto flags = std::make_shared<ServeFlags>();
  CLI::App* command = app.add_subcommand("serve", "Receive the data of many machines' agents and show it");
  command->footer(
      "Examples:\n"
      "  gpusonde serve --state /data/gpusonde --tokens /etc/gpusonde/tokens\n"
      "  gpusonde serve --tokens tokens --tls-cert server.crt --tls-key server.key \\\n"
      "      --listen 0.0.0.0:7272 --pages-listen 0.0.0.0:7171\n\n"
      "Keeps one file per host and day under STATE/hosts; any DuckDB client can read them while gpusonde is\n"
      "stopped. docs/serve.md says how agents on other machines reach it.");
  AddListenFlags(*command, flags->protection);
  command->get_option("--tokens")
      ->required()
      ->description("File with the tokens that give access, which `gpusonde token new` adds to");
  command
      ->add_option("--tls-client-ca", flags->client_ca,
                   "PEM file with the CAs that must have signed agents' certificates (mTLS, in addition to a "
                   "token) [none]")
      ->check(Path())
      ->needs(command->get_option("--tls-cert"));
  command->add_option("--state", flags->state, "Folder for the data")->check(Path())->capture_default_str();
  command->add_option("--listen", flags->listen, "IP:PORT for agents; port 0: any free port")
      ->capture_default_str();
  command->add_option(
      "--pages-listen", flags->pages,
      fmt::format("IP:PORT of the UI; port 0: any free port [127.0.0.1:{}, or the next free port up "
                  "to {}]",
                  server::kDefaultPort, server::kLastDefaultPort));
  command
      ->add_option(
          "--memory-mb", flags->memory_mb,
          "Close hosts' files early beyond this much memory [a quarter of the machine's or the cgroup's]")
      ->check(PositiveNumber("MB"));
  command->add_option("--max-hosts", flags->max_hosts, "Refuse new hosts beyond this many")
      ->capture_default_str()
      ->check(WholeNumber("N", 1, 10'000));
  command->add_option("--days", flags->days, "Retention in days")
      ->capture_default_str()
      ->check(WholeNumber("N", 1, 1'000'000));
  command->add_option("--max-gb", flags->gigabytes, "Retention in gigabytes, of each host")
      ->capture_default_str()
      ->check(PositiveNumber("GB"));
  command
      ->add_option("--disk-reserve-mb", flags->reserve_mb,
                   "Store nothing while the disk has less free space than this; agents keep their data")
      ->capture_default_str()
      ->check(Number("MB", 0, 1e9));
  command->callback([command, flags, &exit_status] {
    const server::ListenAddress listen = ParseListen("--listen", flags->listen, flags->protection);
    std::optional<server::ListenAddress> pages;
    if (command->count("--pages-listen") > 0)
      pages = ParseListen("--pages-listen", flags->pages, flags->protection);
    exit_status = ExitStatusOf("serve", RunServe(*flags, listen, pages));
  });
}

}  // namespace gpusonde::app
