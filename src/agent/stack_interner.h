// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <future>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "agent/process_table.h"
#include "agent/rows.h"
#include "base/id128.h"
#include "model/drops.h"
#include "sources/ebpf/raw_stack.h"
#include "symbols/binary_table.h"
#include "symbols/kernel_symbols.h"
#include "symbols/line_client.h"

namespace gpusonde::agent {

// Turns raw stacks into stack ids, and writes each stack, location and function once, with its names. A
// stack's id depends on its raw frames only (build id and offset; a Python function's file, name, first line
// and instruction), so the same code has the same id on every machine and naming it better later changes
// nothing. Not thread-safe.
class StackInterner {
 public:
  // The kernel's symbols, loaded meanwhile.
  using KernelSymbolsLater = std::future<Result<symbols::KernelSymbols>>;

  // The first kernel frame waits for `kernel`; where that is invalid or an error (hidden addresses), kernel
  // frames are shown by address. The references must outlive the interner.
  StackInterner(KernelSymbolsLater kernel, symbols::BinaryTable& binaries, symbols::LineClient& lines,
                ProcessTable& processes, Rows& rows);

  // The id of the stack: kernel frames on top of user frames, Python frames in the places of the
  // interpreter's own. A sample without frames gets the stack of one unknown location. Frames that can't be
  // named are counted in `drops`.
  Id128 Intern(Process& process, const ebpf::RawStack& stack, model::DropCounts& drops);

  // The stack of one unknown location.
  Id128 UnknownStack();

  // How many of a kernel stack's frames, leaf first, are those of whoever watches the scheduler.
  size_t CountSchedulerWatchers(std::span<const uint64_t> kernel_frames);

  // Writes a location again, with the lines that were asked for when it was first seen.
  void TakeLines(const symbols::LineClient::Answer& answer, model::DropCounts& drops);

  // Writes everything again from now on, as into a new store.
  void Rewrite();

 private:
  struct CachedStack {
    Id128 stack;
    int32_t unknown_mappings = 0;  // frames of that stack
    int32_t without_symbol = 0;
    int32_t without_jit_name = 0;
    int32_t without_python_name = 0;
  };
  // One frame made ready: its id, and whether a name was found.
  struct Frame {
    Id128 location;
    bool known_mapping = true;
    bool named = true;
    bool python = false;
    bool jit = false;
  };

  std::vector<Frame> UserFrames(Process& process, const ebpf::RawStack& stack);
  Frame KernelFrame(uint64_t address);
  Frame UserFrame(Process& process, uint64_t address);
  Frame FileFrame(const Process& process, const AddressSpace::Mapping& mapping, uint64_t address);
  Frame JitFrame(const Process& process, uint64_t address);
  Frame PythonFrame(const Process& process, const gpusonde_python_frame& frame);
  Frame MissingFrame();
  Frame UnknownFrame();

  // Remembers a location by its id; true when it is new and its row is still to be written.
  bool IsNew(const Id128& location, bool named);
  // `source` tells its file and first line.
  Id128 WriteFunction(const Id128& scope, const std::string& system_name, uint64_t address,
                      const symbols::SourceFrame& source = {});
  static std::string ShownName(const symbols::PythonCode& code);
  Id128 WritePythonFunction(const symbols::PythonCode& code);

  const std::optional<symbols::KernelSymbols>& Kernel();

  KernelSymbolsLater kernel_later_;
  std::optional<symbols::KernelSymbols> kernel_;  // what Kernel() got
  symbols::BinaryTable& binaries_;
  symbols::LineClient& lines_;
  ProcessTable& processes_;
  Rows& rows_;
  std::unordered_map<Id128, CachedStack> by_raw_frames_;
  std::unordered_map<Id128, bool> locations_;  // written ones, and whether they have a name
  std::unordered_set<Id128> stacks_;
  std::unordered_map<Id128, bool> functions_;  // written ones, and whether they have a file
  model::DropCounts unreadable_;
};

}  // namespace gpusonde::agent
