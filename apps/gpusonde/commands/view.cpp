// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "browser.h"
#include "command.h"
#include "listen_flags.h"
#include "messages.h"
#include "reader_process.h"
#include "recordings.h"
#include "server/ui_files.h"
#include "server/ui_server.h"
#include "stop_signal.h"
#include "store/recordings/recording.h"
#include "values.h"

namespace gpusonde::app {
namespace {

struct ViewOptions {
  std::vector<std::string> files;
  std::string listen;  // empty: the default ports
  ListenFlags protection;
  std::vector<std::string> sources{"."};
  bool no_open = false;
  convert::ImportOptions reading;  // of traces
};

int FailView(const Error& error) {
  PrintError("view", error);
  return kExitFailed;
}

int View(const ViewOptions& options, const std::optional<server::ListenAddress>& listen,
         const server::Guard& guard) {
  const auto store = OpenRecordings(options.files, options.reading);
  if (!store.has_value()) return FailView(store.error());
  Result<std::vector<std::string>> notices = NoticesOf(**store);
  if (!notices.has_value()) return FailView(notices.error());
  Result<server::SourceFolders> sources = server::SourceFolders::Open(options.sources);
  if (!sources.has_value()) return FailView(sources.error());
  const auto server =
      server::UiServer::Start(**store,
                              {.mode = "view",
                               .live = false,
                               .title = TitleOf(options.files),
                               .notices = [notices = *std::move(notices)] { return notices; },
                               .sources = std::make_shared<server::SourceFolders>(*std::move(sources))},
                              listen, guard);
  if (!server.has_value()) return FailView(server.error());
  CatchStopSignals();
  if (!(*server)->remark().empty()) PrintNotice("view", (*server)->remark());
  PrintTo(stdout, "{} is at {} (press Ctrl-C to stop)\n", TitleOf(options.files),
          PlaceOf((*server)->Url(), listen.value_or(server::ListenAddress())));
  FlushOutput();
  ReportToParent((*server)->Url());
  WaitForStopSignal();
  return kExitOk;
}

// The server sends its address after it has read recordings; a crafted one may have taken it over.
bool IsAddress(std::string_view url) {
  for (const std::string_view scheme : {"http://", "https://"})
    if (url.starts_with(scheme))
      return url.ends_with('/') &&
             url.find_first_not_of("0123456789abcdef.:[]/", scheme.size()) == std::string_view::npos;
  return false;
}

int ViewApart(const ViewOptions& options, const std::optional<server::ListenAddress>& listen) {
  const Result<server::Guard> guard = OpenGuard(options.protection);
  if (!guard.has_value()) return FailView(guard.error());
  std::vector<std::string> readable = server::UiFolders();
  for (std::string& file : FilesOf(options.protection)) readable.push_back(std::move(file));
  readable.insert(readable.end(), options.sources.begin(), options.sources.end());
  return RunReader({.command = "view",
                    .files = options.files,
                    .readable = std::move(readable),
                    .serves = true,
                    .survives_no_memory = true,
                    .work = [&] { return View(options, listen, *guard); },
                    .on_message =
                        [&](std::string_view url) {
                          if (!options.no_open && IsAddress(url)) OpenInBrowser(std::string(url));
                        }});
}

}  // namespace

void AddView(CLI::App& app, int& exit_status) {
  auto options = std::make_shared<ViewOptions>();
  CLI::App* command = app.add_subcommand("view", "Show recordings and traces in the browser");
  command->footer(
      "Examples:\n"
      "  gpusonde view run.sonde\n"
      "  gpusonde view monday.sonde tuesday.sonde --listen 127.0.0.1:8000 --no-open\n"
      "  gpusonde view run.sonde --sources ~/train --sources /usr/lib/python3.11");
  command->add_option("FILE", options->files, "Recordings or traces to merge and show")
      ->check(Path())
      ->required();
  command->add_option(
      "--listen", options->listen,
      fmt::format("IP:PORT to listen on; port 0: any free port [127.0.0.1:{}, or the next free "
                  "port up to {}]",
                  server::kDefaultPort, server::kLastDefaultPort));
  command
      ->add_option("--sources", options->sources,
                   "Folders whose source files the UI may show, except hidden ones [.]")
      ->check(Path())
      ->allow_extra_args(false);
  AddListenFlags(*command, options->protection);
  command->add_flag("--no-open", options->no_open, "Don't open a browser");
  AddTraceOptions(*command, options->reading);
  command->callback([command, options, &exit_status] {
    std::optional<server::ListenAddress> listen;
    if (command->count("--listen") > 0)
      listen = ParseListen("--listen", options->listen, options->protection);
    exit_status = ViewApart(*options, listen);
  });
}

}  // namespace gpusonde::app
