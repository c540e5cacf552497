// SPDX-License-Identifier: Apache-2.0
#include "agent/stack_describer.h"

#include <limits>
#include <utility>
#include <variant>
#include <vector>

#include "base/log.h"
#include "base/time.h"
#include "unwind/compile.h"

namespace gpusonde::agent {

void StackDescriber::Follow(const perf::SidebandEvent& event) {
  if (const auto* exit = std::get_if<perf::ExitEvent>(&event.what); exit != nullptr)
    if (!processes_.Runs(exit->pid)) tables_.ForgetProcess(exit->pid);
  if (const auto* fork = std::get_if<perf::ForkEvent>(&event.what); fork != nullptr)
    if (fork->pid != fork->parent_pid) tables_.ForkProcess(fork->parent_pid, fork->pid);
}

void StackDescriber::Describe(Process& process) {
  const bool is_known = process.described_generation == process.mappings.generation();
  const bool is_answered = process.waits_for_files && process.described_answers != files_.answered();
  if ((is_known && !is_answered) || process.exited_ns.has_value()) return;
  process.described_generation = process.mappings.generation();
  process.described_answers = files_.answered();
  process.waits_for_files = !processes_.RefreshPython(process);
  std::vector<ebpf::StackTables::Mapping> mappings;
  process.mappings.ForEach([&](const AddressSpace::Mapping& mapping) {
    mappings.push_back(
        {.start = mapping.start,
         .end = mapping.end,
         .file_offset = mapping.file_offset,
         .file = mapping.binary == nullptr ? std::nullopt : FileWithTable(*mapping.binary, process)});
  });
  const Status set =
      tables_.SetProcess(process.info.pid, process.info.user_id, std::move(mappings),
                         process.python == nullptr ? gpusonde_python{} : process.python->Describe());
  if (!set.has_value()) LogWarn("stacks of process {}: {}", process.info.pid, set.error().message);
}

std::optional<Id128> StackDescriber::FileWithTable(const symbols::BinaryTable::Binary& binary,
                                                   Process& process) {
  if (!binary.IsFile()) return std::nullopt;
  if (tables_.HasFile(binary.id)) return binary.id;
  const auto unusable = unusable_.find(binary.id);
  if (unusable != unusable_.end() && MonotonicNow() < unusable->second) return std::nullopt;
  const int32_t user_id = binary.IsSystemFile() ? 0 : process.info.user_id;
  bool opened = true;  // or asked before
  auto answer = files_.Ask({.kind = symbols::FileRequestKind::kUnwindTable,
                            .file = binary.id,
                            .user_id = user_id,
                            .name = binary.path},
                           [&]() -> Result<symbols::FileReader::Files> {
                             Result<Fd> file = symbols::BinaryTable::OpenFile(binary, process.info.pid);
                             opened = file.has_value();
                             if (!opened) return Fail(std::move(file).error());
                             return symbols::FileReader::Files{std::move(*file), {}};
                           });
  if (!answer.has_value()) {
    process.waits_for_files = true;
    return std::nullopt;
  }
  const auto refuse = [&](int64_t until_ns) {
    if (unusable_.size() >= kMaxUnusable) unusable_.clear();
    unusable_[binary.id] = until_ns;
  };
  const auto add = [&]() -> Status {
    Result<unwind::CompiledTable> compiled =
        answer->bytes.has_value() ? unwind::Unpack(*answer->bytes)
                                  : Result<unwind::CompiledTable>(std::unexpected(answer->bytes.error()));
    if (!compiled.has_value()) {
      if (opened) refuse(std::numeric_limits<int64_t>::max());
      return Fail(std::move(compiled).error());
    }
    if (compiled->table.malformed > 0)
      LogInfo("{}: {} malformed unwind entries", binary.path, compiled->table.malformed);
    Status placed = tables_.AddFile(binary.id, std::move(compiled->table), compiled->rules, user_id);
    if (!placed.has_value()) refuse(MonotonicNow() + kRetryNs);
    return placed;
  };
  const Status added = add();
  if (added.has_value()) return binary.id;
  if (warned_users_.size() >= kMaxUnusable) warned_users_.clear();
  if (added.error().code == ErrorCode::kOutOfSpace && warned_users_.insert(user_id).second)
    LogWarn("no room for unwind tables: stacks in {} and later binaries are truncated ({})", binary.path,
            added.error().message);
  else
    LogInfo("no unwind table for {}: {}", binary.path, added.error().message);
  return std::nullopt;
}

}  // namespace gpusonde::agent
