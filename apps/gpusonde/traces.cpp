// SPDX-License-Identifier: Apache-2.0
#include "traces.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <new>
#include <optional>
#include <span>
#include <utility>

#include "base/fd.h"
#include "base/terminal.h"
#include "command.h"
#include "messages.h"
#include "reader_process.h"
#include "recordings.h"

namespace gpusonde::app {
namespace {

constexpr std::string_view kStandardOutput = "standard output";

std::string out_of_memory;  // NOLINT(cert-err58-cpp): an empty string doesn't allocate

// Any thread may run out of memory, with nothing left to report it by exceptions.
[[noreturn]] void EndWithoutMemory() {
  static std::atomic_flag said;
  if (!said.test_and_set())
    static_cast<void>(!::write(STDERR_FILENO, out_of_memory.data(), out_of_memory.size()));
  ::_exit(kExitFailed);
}

// What is wrong with the result, or nothing if there was an error, which is printed. `output` is the file
// that the work's output becomes.
std::optional<std::string> Do(const TraceWork& work, const std::string& output) {
  out_of_memory = fmt::format("gpusonde {}: out of memory; use fewer --threads{}\n", work.command,
                              work.command == "analyze" ? ", or --part and --merge" : "");
  std::set_new_handler(EndWithoutMemory);
  auto wrong = work.work(work.output);
  if (wrong.has_value()) return *std::move(wrong);
  Error error = std::move(wrong).error();
  // A child's standard output is the file.
  if (work.output != output && error.message.starts_with(kStandardOutput))
    error.message.replace(0, kStandardOutput.size(), output);
  if (!error.message.empty()) PrintError(work.command, error);
  return std::nullopt;
}

int Judge(const TraceWork& work, std::string_view wrong) {
  if (wrong.empty()) return kExitOk;
  PrintError(work.command, {ErrorCode::kUnavailable, std::string(wrong)});
  return kExitFailed;
}

}  // namespace

int RunOverTracesHere(const TraceWork& work) {
  if (const Status other = CheckIsNoInput(work.output, work.traces); !other.has_value()) {
    PrintError(work.command, other.error());
    return kExitFailed;
  }
  const std::optional<std::string> wrong = Do(work, work.output);
  return wrong.has_value() ? Judge(work, *wrong) : kExitFailed;
}

int RunOverTraces(const TraceWork& work) {
  if (!work.apart && !std::ranges::any_of(work.traces, IsRecording)) return RunOverTracesHere(work);
  TraceWork to_standard_output = work;
  to_standard_output.output.clear();
  std::string wrong;
  ReaderProcess reader{.command = work.command, .files = work.traces};
  reader.work = [&] {
    const std::optional<std::string> found = Do(to_standard_output, work.output);
    if (found.has_value() && !found->empty()) ReportToParent(*found);
    return found.has_value() ? kExitOk : kExitFailed;
  };
  reader.on_message = [&wrong](std::string_view message) { wrong = message; };
  const int status =
      work.output.empty() ? RunReader(reader) : RunReaderInto(work.output, reader, [&reader](int to) {
        ::dup2(to, STDOUT_FILENO);
        return reader.work();
      });
  return status == kExitOk ? Judge(work, wrong) : status;
}

Status WriteReport(std::string_view report, const std::string& output) {
  if (!output.empty()) return WriteFileAtomically(output, report);
  Status written = WriteAll(STDOUT_FILENO, std::as_bytes(std::span(report)));
  if (!written.has_value()) return Fail(std::move(written).error().With(kStandardOutput));
  return {};
}

std::string WrappedText(std::string_view report) {
  constexpr size_t kIndent = 2;
  return Wrap(report, Terminal::Of(STDOUT_FILENO).width, kIndent);
}

}  // namespace gpusonde::app
