// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <utility>

#include "agent/rows.h"
#include "agent/stack_interner.h"
#include "model/drops.h"
#include "symbols/binary_table.h"
#include "symbols/file_reader.h"
#include "symbols/line_client.h"

namespace gpusonde::agent {

// Finds the names and source lines of code. Program files and debug information are read by processes of
// their own, so that names arrive after the rows that they belong to, which are then written again. Not
// thread-safe.
class Names {
 public:
  struct Options {
    StackInterner::KernelSymbolsLater kernel;  // invalid: kernel frames are shown by address
    symbols::LineClient::Options lines;
    symbols::FileReader::Options files;
  };
  // `rows` and `drops` must outlive it.
  Names(Options options, Rows& rows, model::DropCounts& drops)
      : files_(options.files),
        binaries_(&files_),
        lines_(std::move(options.lines)),
        stacks_(std::move(options.kernel), binaries_, lines_, rows),
        drops_(drops) {}

  symbols::FileReader& files() { return files_; }
  symbols::BinaryTable& binaries() { return binaries_; }
  StackInterner& stacks() { return stacks_; }

  // Writes the rows for which names or lines have arrived.
  void WriteArrived();

  // Waits for those that are still being looked for, as long as `may_wait` and a few seconds at most; counts
  // those that are given up.
  void Await(const std::function<bool()>& may_wait);

 private:
  void IngestLines();
  void AwaitSymbols(const std::function<bool()>& may_wait);
  void AwaitLines(const std::function<bool()>& may_wait);

  symbols::FileReader files_;
  symbols::BinaryTable binaries_;
  symbols::LineClient lines_;
  StackInterner stacks_;
  model::DropCounts& drops_;
};

}  // namespace gpusonde::agent
