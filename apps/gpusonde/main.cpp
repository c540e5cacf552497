// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/ignored_signal.h"
#include "base/result.h"
#include "base/version.h"
#include "command.h"
#include "messages.h"
#include "store/memory_limit.h"
#include "usage.h"
#include "values.h"

namespace gpusonde::app {
namespace {

// A standard descriptor that is closed (`2>&-`) would be that of the next file that is opened, such as the
// spool, and messages would be written into it. Opened for the wrong direction it fails as a closed one does.
// Programs that are started find it closed. Before all static objects, one of which has an eventfd.
[[gnu::constructor(101)]] void ReserveStandardDescriptors() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(fd, F_GETFD) < 0)
      static_cast<void>(::open("/dev/null", (fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) | O_CLOEXEC));
}

// A write beyond the limit on the size of files (ulimit -f) fails then, with a message. Not ignored, which
// programs that are started would inherit.
void SurviveFileSizeLimit() {
  if (!IsIgnored(SIGXFSZ)) ::signal(SIGXFSZ, [](int) {});
}

int WrongUsage(const std::string& message) {
  std::fputs(message.c_str(), stderr);
  return kExitUsage;
}

// Adds the command that the first word names alone: the options of all others take 1.3 ms of CPU time. Any
// other first word may be an option or a mistake, for which all are needed.
void AddCommands(CLI::App& app, std::string_view first_word, int& exit_status) {
  const std::span<const Command> all = AllCommands();
  const auto named = std::ranges::find(all, first_word, &Command::name);
  for (const Command& command : named != all.end() ? std::span(&*named, 1) : all)
    command.add(app, exit_status);
}

int Main(int argc, char** argv) {
  SurviveFileSizeLimit();
  CLI::App app("GPU performance observability, from one process to a planet of GPUs.", "gpusonde");
  app.set_version_flag("--version", std::string(kVersion), "Show the version");
  app.set_help_flag("-h,--help", "Show this help");
  app.formatter(HelpFormatter());
  app.footer(
      "Begin with:\n"
      "  gpusonde doctor                             # what works on this machine\n"
      "  gpusonde record -- python3 train.py         # profile a program into run.sonde\n"
      "  gpusonde view run.sonde                     # look at it\n"
      "  gpusonde analyze trace.json.gz              # findings in a trace of PyTorch or Nsight Systems\n"
      "  sudo gpusonde up                            # profile the machine all the time\n"
      "`gpusonde COMMAND --help` explains a command.");
  app.require_subcommand(0, 1);  // with (1, 1), CLI11 would report a missing command before a parse error
  int exit_status = kExitOk;
  app.fallthrough();  // so that --memory-limit-mb may follow the command too
  app.add_option_function<double>(
         "--memory-limit-mb",
         [](const double& megabytes) { store::SetMemoryLimit(static_cast<int64_t>(megabytes * 1e6)); },
         "Memory limit of the database, of every command; more spills to temporary files [an eighth of the "
         "machine's memory, at most 2 GB; up, and serve for each host: 134]")
      ->check(Number("MB", 128, 1e9));
  // "help COMMAND" is "COMMAND --help".
  std::vector<std::string> words(argv + 1, argv + argc);
  if (!words.empty() && words.front() == "help") {
    words.erase(words.begin());
    words.emplace_back("--help");
  }
  const bool has_separator = std::ranges::find(words, "--") != words.end();
  AddCommands(app, words.empty() ? "" : words.front(), exit_status);
  RefuseOptionsAsValues(app);
  try {
    std::ranges::reverse(words);  // as CLI11 takes them
    app.parse(std::move(words));
  } catch (const CLI::Success& done) {  // --help, --version
    std::ostringstream text;
    const int status = app.exit(done, text);
    WriteTo(stdout, text.str());
    return FinishOutput("help", status);
  } catch (const CLI::ParseError& error) {
    return WrongUsage(ExplainUsage(app, error, has_separator));
  } catch (const std::system_error& error) {
    if (error.code() != std::errc::resource_unavailable_try_again) throw;
    return ExitStatusOf(app.get_subcommands().front()->get_name(),
                        Fail(ErrorCode::kUnavailable,
                             "the system starts no more threads for this user or service; allow more (ulimit "
                             "-u, pids.max of the cgroup, TasksMax of the systemd unit)"));
  }
  if (app.get_subcommands().empty()) return WrongUsage(ListCommands(app));
  return FinishOutput(app.get_subcommands().front()->get_name(), exit_status);
}

}  // namespace
}  // namespace gpusonde::app

int main(int argc, char** argv) { return gpusonde::app::Main(argc, argv); }
