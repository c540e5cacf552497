// SPDX-License-Identifier: Apache-2.0
#include "messages.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <string>

#include "base/printable.h"
#include "base/terminal.h"
#include "command.h"

namespace gpusonde::app {
namespace {

constexpr size_t kLabelWidth = 10;

int output_error = 0;  // why standard output could not be written; 0: all was

void Print(std::string_view command, std::string_view message, Style style) {
  const Terminal terminal = Terminal::Of(STDERR_FILENO);
  const std::string head = fmt::format("gpusonde {}:", command);
  const std::string text = Wrap(fmt::format("{} {}", head, PrintableLines(message)), terminal.width, 2);
  PrintTo(stderr, "{}{}\n", terminal.Paint(style, head), std::string_view(text).substr(head.size()));
}

Style StyleOf(std::string_view label) {
  if (label.starts_with("dropped")) return Style::kRed;
  if (label.starts_with("slow")) return Style::kYellow;
  return Style::kBold;
}

}  // namespace

void PrintError(std::string_view command, const Error& error) { Print(command, error.message, Style::kRed); }

int ExitStatusOf(std::string_view command, const Status& done) {
  if (done.has_value()) return kExitOk;
  PrintError(command, done.error());
  return kExitFailed;
}

int FinishOutput(std::string_view command, int status) {
  FlushOutput();
  if (output_error == 0 && std::ferror(stdout) != 0) output_error = EIO;  // by other means than WriteTo
  if (output_error == 0 || output_error == EPIPE || status != kExitOk) return status;
  PrintError(command, ErrnoError(output_error, "write to standard output"));
  return kExitFailed;
}

void FlushOutput() {
  if (std::fflush(stdout) != 0) output_error = errno;
}

void WriteTo(std::FILE* stream, std::string_view text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stream) == text.size();
  if (!written && stream == stdout) output_error = errno;
}

void PrintNotice(std::string_view command, std::string_view message) {
  Print(command, message, Style::kBold);
}

void PrintLabelled(std::string_view text) {
  const Terminal terminal = Terminal::Of(STDERR_FILENO);
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = Wrap(text.substr(at, end - at), terminal.width, kLabelWidth);
    const std::string_view label = std::string_view(line).substr(0, kLabelWidth);
    PrintTo(stderr, "{}{}\n", terminal.Paint(StyleOf(label), label),
            std::string_view(line).substr(label.size()));
    at = end + 1;
  }
}

}  // namespace gpusonde::app
