// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace gpusonde::app {

// Work of a command over recordings or traces, done in a sandboxed child process that may crash: DuckDB reads
// the files, and a crafted file can corrupt its memory.
struct ReaderProcess {
  std::string command;                // the name used in messages
  std::vector<std::string> files;     // the recordings or traces
  std::vector<std::string> readable;  // further files and folders
  bool serves = false;                // TCP connections
  // Whether `work` catches std::bad_alloc wherever it answers, so that a question that needs more memory than
  // there is fails alone. Otherwise it ends the child.
  bool survives_no_memory = false;
  // Where the folder for the child's temporary files is made, its $TMPDIR; "": in the system's, or for large
  // files in FolderForLargeFiles() if any file is a trace.
  std::string temporary_in = {};
  // Runs in the child, confined to the files above (base/sandbox.h); returns its exit status.
  std::function<int()> work;
  // Runs in this process with the message that the child sent with ReportToParent, if any. The message is
  // untrusted.
  std::function<void(std::string_view)> on_message = [](std::string_view) {};
  // Runs in this process after the child succeeded, with that folder; returns the exit status.
  std::function<int(const std::string&)> on_success = [](const std::string&) { return 0; };
};

// Runs it, and returns the exit status of the command. When the process crashes, says so and returns
// kExitFailed. SIGINT, SIGTERM, SIGHUP and SIGQUIT end it within seconds, even if it spins. Any other signal
// that ends it, except SIGKILL, ends this process too.
int RunReader(const ReaderProcess& reader);

// Refuses an output that is one of the files that are read, also by another name: it would be replaced.
// Errors: kInvalidArgument.
Status CheckIsNoInput(const std::string& output, const std::vector<std::string>& inputs);

// Like RunReader, for work that writes the file `output`: the child writes to `to`, a file that this process
// opened beside it and puts in its place when the child succeeds (base/replacing_file.h).
int RunReaderInto(const std::string& output, ReaderProcess reader, const std::function<int(int to)>& work);

// In the child: sends one message to the parent process.
void ReportToParent(std::string_view message);

}  // namespace gpusonde::app
