// SPDX-License-Identifier: Apache-2.0
#include "agent/stack_describer.h"

#include <utility>
#include <variant>
#include <vector>

#include "base/log.h"
#include "unwind/compile.h"

namespace gpusonde::agent {

void StackDescriber::Follow(const perf::SidebandEvent& event) {
  if (const auto* exit = std::get_if<perf::ExitEvent>(&event.what); exit != nullptr)
    if (!processes_.Runs(exit->pid)) tables_.ForgetProcess(exit->pid);
  if (const auto* fork = std::get_if<perf::ForkEvent>(&event.what); fork != nullptr)
    if (fork->pid != fork->parent_pid) tables_.ForkProcess(fork->parent_pid, fork->pid);
}

void StackDescriber::Describe(Process& process) {
  if (process.described_generation == process.mappings.generation() || process.exited_ns.has_value()) return;
  process.described_generation = process.mappings.generation();
  processes_.RefreshPython(process);
  std::vector<ebpf::StackTables::Mapping> mappings;
  process.mappings.ForEach([&](const AddressSpace::Mapping& mapping) {
    mappings.push_back({.start = mapping.start,
                        .end = mapping.end,
                        .file_offset = mapping.file_offset,
                        .file = mapping.binary == nullptr
                                    ? std::nullopt
                                    : FileWithTable(*mapping.binary, process.info.pid)});
  });
  const Status set =
      tables_.SetProcess(process.info.pid, std::move(mappings),
                         process.python == nullptr ? gpusonde_python{} : process.python->Describe());
  if (!set.has_value()) LogWarn("stacks of process {}: {}", process.info.pid, set.error().message);
}

std::optional<Id128> StackDescriber::FileWithTable(const symbols::BinaryTable::Binary& binary, int32_t pid) {
  if (tables_.HasFile(binary.id)) return binary.id;
  if (unusable_.contains(binary.id)) return std::nullopt;
  const auto add = [&]() -> Status {
    ASSIGN_OR_RETURN(const Fd fd, symbols::BinaryTable::OpenFile(binary, pid));
    const Result<unwind::Table> table = unwind::CompileFile(fd.get(), binary.path, tables_.rules());
    if (!table.has_value()) {
      if (unusable_.size() >= kMaxUnusable) unusable_.clear();
      unusable_.insert(binary.id);
      return Fail(table.error());
    }
    if (table->malformed > 0) LogInfo("{}: {} malformed unwind entries", binary.path, table->malformed);
    return tables_.AddFile(binary.id, *table);
  };
  const Status added = add();
  if (added.has_value()) return binary.id;
  LogInfo("no unwind table for {}: {}", binary.path, added.error().message);
  return std::nullopt;
}

}  // namespace gpusonde::agent
