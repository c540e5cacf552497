// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "command.h"
#include "mcp/server.h"
#include "mcp/source.h"
#include "mcp/stdio.h"
#include "messages.h"
#include "reader_process.h"
#include "recordings.h"

namespace gpusonde::app {
namespace {

struct McpOptions {
  std::vector<std::string> files;
  convert::ImportOptions reading;  // of traces
};

Status ServeFiles(const McpOptions& options) {
  ASSIGN_OR_RETURN(const auto store, OpenRecordings(options.files, options.reading));
  ASSIGN_OR_RETURN(std::vector<std::string> notices, NoticesOf(*store));
  const auto source = mcp::FilesSource(*store, options.files, TitleOf(options.files), std::move(notices));
  mcp::Server server(*source);
  return mcp::ServeStdio(server, STDIN_FILENO, STDOUT_FILENO);
}

}  // namespace

void AddMcp(CLI::App& app, int& exit_status) {
  auto options = std::make_shared<McpOptions>();
  CLI::App* command =
      app.add_subcommand("mcp", "Answer the questions of an AI assistant about recordings and traces");
  command->footer(
      "It speaks the Model Context Protocol over standard input and output. To add it to an assistant:\n"
      "  {\"mcpServers\": {\"gpusonde\": {\"command\": \"gpusonde\", \"args\": [\"mcp\", "
      "\"run.sonde\"]}}}\n\n"
      "docs/mcp.md describes its tools and what they can't do.");
  command->add_option("FILE", options->files, "Recordings or traces to merge")->required();
  AddTraceOptions(*command, options->reading);
  command->callback([options, &exit_status] {
    exit_status = RunReader({.command = "mcp", .files = options->files, .work = [&] {
                               const Status done = ServeFiles(*options);
                               if (done.has_value()) return kExitOk;
                               PrintError("mcp", done.error());
                               return kExitFailed;
                             }});
  });
}

}  // namespace gpusonde::app
