// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace gpusonde::app {

// Work of a command that reads traces with several threads.
struct TraceWork {
  std::string command;              // the name used in messages; a literal's, as it is kept
  std::vector<std::string> traces;  // what it reads
  std::string output;               // the file to write; empty: standard output
  bool apart = false;               // in a child process also without recordings, as DuckDB reads the traces
  // Writes to the given file, or standard output if that is empty. Returns what is wrong with the result,
  // which is written all the same; empty if nothing is.
  std::function<Result<std::string>(const std::string& output)> work;
};

// Does it, prints its error or what is wrong, and returns the exit status of the command. Recordings are read
// in a sandboxed child process that may crash (RunReader). When any thread runs out of memory, the process
// ends with an error.
int RunOverTraces(const TraceWork& work);
// The same, always in this process.
int RunOverTracesHere(const TraceWork& work);

// Writes a report to a file, or to standard output if that is empty.
Status WriteReport(std::string_view report, const std::string& output);
// A report for standard output: on a terminal, longer lines are broken at words.
std::string WrappedText(std::string_view report);

}  // namespace gpusonde::app
