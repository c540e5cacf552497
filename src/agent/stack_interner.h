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

// Turns raw stacks into stack ids and writes each stack, location and function once, with names. A stack's id
// depends only on its raw frames (build id and offset; for Python the file, name, first line and
// instruction), so the same code has the same id on every machine, and better names later don't change it.
// Not thread-safe.
class StackInterner {
 public:
  // The kernel's symbols, loaded in the background.
  using KernelSymbolsLater = std::future<Result<symbols::KernelSymbols>>;

  // Bounds of what is remembered; at each one that part is forgotten.
  struct Limits {
    // Raw stacks, 80 bytes each. They are those of one process: where processes are short most are never
    // seen again. A busy service shows some thousands an hour.
    size_t raw_stacks = 20'000;
    // Ids of stacks, locations and functions that were written, 56 bytes each; then all are written again.
    size_t written_ids = 200'000;
  };

  // The first kernel frame waits for `kernel`; if that is invalid or an error (hidden addresses), kernel
  // frames are shown by address. The references must outlive the interner.
  StackInterner(KernelSymbolsLater kernel, symbols::BinaryTable& binaries, symbols::LineClient& lines,
                Rows& rows, const Limits& limits);
  StackInterner(KernelSymbolsLater kernel, symbols::BinaryTable& binaries, symbols::LineClient& lines,
                Rows& rows)
      : StackInterner(std::move(kernel), binaries, lines, rows, Limits()) {}

  // The id of the stack: kernel frames on top of user frames, Python frames in place of the interpreter's
  // own. A sample without frames has the stack of one unknown location. Frames without a name are counted in
  // `drops`.
  Id128 Intern(Process& process, const ebpf::RawStack& stack, model::DropCounts& drops);

  // The stack of one unknown location.
  Id128 UnknownStack();

  // How many frames of a kernel stack, leaf first, belong to tracers of the scheduler.
  size_t CountSchedulerWatchers(std::span<const uint64_t> kernel_frames);

  // Writes a location again with its source lines, which were requested when it was first seen.
  void IngestLines(const symbols::LineClient::Answer& answer, model::DropCounts& drops);

  // Writes locations again, in files that were still being read when they were first seen.
  void IngestSymbols(model::DropCounts& drops);
  // How many files that are.
  size_t files_awaited() const { return unnamed_.size(); }

  // Adds those files.
  void AddAwaited(std::unordered_set<const symbols::BinaryTable::Binary*>& binaries) const {
    for (const auto& [binary, unnamed] : unnamed_) binaries.insert(binary);
  }

  // Writes everything again from now on, as into a new store.
  void Rewrite();

  // How much is remembered.
  size_t raw_stacks() const { return by_raw_frames_.size(); }
  size_t written_ids() const { return locations_.size() + stacks_.size() + functions_.size(); }

 private:
  struct CachedStack {
    Id128 stack;
    int32_t unknown_mappings = 0;  // frames of that stack
    int32_t without_symbol = 0;
    int32_t without_jit_name = 0;
    int32_t without_python_name = 0;
  };
  // A resolved frame: its id, and whether it has a name.
  struct Frame {
    Id128 location;
    bool known_mapping = true;
    bool named = true;
    bool python = false;
    bool jit = false;
    bool pending = false;  // its file is still being read
  };
  // Locations in a file that have no names yet, because the file is still being read, and who maps it.
  struct Unnamed {
    symbols::BinaryTable::Mapper mapper;
    std::vector<uint64_t> offsets;
  };

  std::vector<Frame> UserFrames(Process& process, const ebpf::RawStack& stack);
  Frame KernelFrame(uint64_t address);
  Frame UserFrame(Process& process, uint64_t address);
  Frame FileFrame(const Process& process, const AddressSpace::Mapping& mapping, uint64_t address);
  // Writes the row of a place in a file, with what is known of it, and asks for its lines. Whether it has a
  // name.
  bool WriteFileLocation(const symbols::BinaryTable::Binary& binary, int32_t pid, uint64_t offset);
  Frame JitFrame(const Process& process, uint64_t address);
  Frame PythonFrame(const Process& process, const gpusonde_python_frame& frame);
  Frame MissingFrame();
  Frame UnknownFrame();

  // Remembers a location by its id; true if it is new, so its row must be written.
  bool IsNew(const Id128& location, bool named);
  // `source` has the function's file and first line.
  Id128 WriteFunction(const Id128& scope, const std::string& system_name, uint64_t address,
                      const symbols::SourceFrame& source = {});
  static std::string ShownName(const symbols::PythonCode& code);
  Id128 WritePythonFunction(const symbols::PythonCode& code);

  const std::optional<symbols::KernelSymbols>& Kernel();

  KernelSymbolsLater kernel_later_;
  std::optional<symbols::KernelSymbols> kernel_;  // loaded by Kernel()
  symbols::BinaryTable& binaries_;
  symbols::LineClient& lines_;
  Rows& rows_;
  Limits limits_;
  std::unordered_map<Id128, CachedStack> by_raw_frames_;
  std::unordered_map<Id128, bool> locations_;  // written ones, and whether they have a name
  std::unordered_set<Id128> stacks_;
  std::unordered_map<Id128, bool> functions_;  // written ones, and whether they have a file
  model::DropCounts unreadable_;
  std::unordered_map<const symbols::BinaryTable::Binary*, Unnamed> unnamed_;
};

}  // namespace gpusonde::agent
