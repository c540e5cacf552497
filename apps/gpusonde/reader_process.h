// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace gpusonde::app {

// A command's work over recordings, done by a process that may die: DuckDB reads them, and a crafted file can
// corrupt its memory.
struct ReaderProcess {
  std::string command;                // as its messages name it
  std::vector<std::string> files;     // the recordings
  std::vector<std::string> readable;  // further files and folders
  bool serves = false;                // TCP connections
  // In the new process, confined to the above (base/sandbox.h); returns its exit status.
  std::function<int()> work;
  // In this process, with what the other wrote with TellParent, if anything. Not to be trusted.
  std::function<void(std::string_view)> on_message = [](std::string_view) {};
};

// Runs it, and returns the exit status of the command. When the process crashes, says that the recording is
// damaged and returns kExitFailed; when a signal of somebody else ends it, that signal ends this process too.
int RunReader(const ReaderProcess& reader);

// The same for work that makes the file `output`: that process is handed `to`, a file in memory, and when it
// has done its work, this one replaces `output` by what is in it.
int RunReaderInto(const std::string& output, ReaderProcess reader, const std::function<int(int to)>& work);

// Within the process: one message to the one that started it.
void TellParent(std::string_view message);

}  // namespace gpusonde::app
