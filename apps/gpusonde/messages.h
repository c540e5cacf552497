// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/result.h"

namespace gpusonde::app {

// Prints an error to standard error: "gpusonde COMMAND: …", wrapped to the terminal's width. The message may
// have several lines; control characters in it are escaped.
void PrintError(std::string_view command, const Error& error);

// The exit status of a command that ended so; prints an error.
int ExitStatusOf(std::string_view command, const Status& done);

// The exit status of a command that printed to standard output: `status`, unless it is kExitOk and not all
// could be written, as on a full disk; then it prints an error and is kExitFailed. A closed pipe is no error:
// its reader needs no more.
int FinishOutput(std::string_view command, int status);

// Flushes standard output, so that readers see it while the program runs. FinishOutput reports a failure.
void FlushOutput();

// Prints a message that is not an error, in the same format.
void PrintNotice(std::string_view command, std::string_view message);

// Prints text whose lines begin with a label, ten characters wide, to standard error.
void PrintLabelled(std::string_view text);

// Prints to standard output or standard error. fmt::print throws when that fails, as on a full disk or a
// closed pipe, which would end the program. This ignores failures: FinishOutput reports those of standard
// output, and those of standard error can't be reported.
void WriteTo(std::FILE* stream, std::string_view text);
template <class... Values>
void PrintTo(std::FILE* stream, fmt::format_string<Values...> format, Values&&... values) {
  WriteTo(stream, fmt::format(format, std::forward<Values>(values)...));
}

}  // namespace gpusonde::app
