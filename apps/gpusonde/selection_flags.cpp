// SPDX-License-Identifier: Apache-2.0
#include "selection_flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <optional>
#include <tuple>
#include <vector>

#include "base/text.h"
#include "base/time.h"
#include "model/tables/processes.h"
#include "store/queries/gpu_query.h"
#include "store/queries/profile_query.h"
#include "store/table_rows.h"
#include "values.h"

namespace gpusonde::app {
namespace {

// A hundred years; sums of such times can't overflow int64_t.
constexpr double kMaxSeconds = 100 * 366 * 86'400.0;
constexpr size_t kProcessesNamed = 5;

std::optional<int64_t> ParseSeconds(const std::string& text) {
  const std::optional<double> seconds = ParseNumber<double>(text);
  if (!seconds.has_value() || !(*seconds >= 0 && *seconds <= kMaxSeconds)) return std::nullopt;
  return std::llround(*seconds * static_cast<double>(kNanosPerSecond));
}

std::string CheckMoment(const std::string& text) {
  if (ParseSeconds(text).has_value() || ParseUtc(text).has_value()) return "";
  return fmt::format(
      "'{}' is not a time; give seconds after the start (2.5) or UTC (2026-11-21 or "
      "2026-11-21T01:32:05.123Z)",
      text);
}

// `text` has passed CheckMoment.
int64_t Moment(const std::string& text, int64_t start_ns) {
  const std::optional<int64_t> seconds_ns = ParseSeconds(text);
  return seconds_ns.has_value() ? start_ns + *seconds_ns : ParseUtc(text).value_or(start_ns);
}

Status SelectTime(store::Store& store, const SelectionFlags& flags, model::Selection& selection) {
  if (flags.from.empty() && flags.to.empty()) return {};
  ASSIGN_OR_RETURN(const store::Overview overview, store::ReadOverview(store));
  const int64_t start_ns = overview.from_ns.value_or(0);
  if (!flags.from.empty()) selection.from_ns = Moment(flags.from, start_ns);
  if (!flags.to.empty()) selection.to_ns = Moment(flags.to, start_ns);
  if (selection.from_ns < selection.to_ns) return {};
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("--from {} is not before --to {}; the recording begins at {}",
                          flags.from.empty() ? "(the start)" : flags.from, flags.to, FormatUtc(start_ns)));
}

bool Matches(const store::ProcessUse& process, const SelectionFlags& flags) {
  if (flags.pid != 0 && process.pid != flags.pid) return false;
  if (flags.tid == 0) return true;
  return std::ranges::find(process.threads, flags.tid, &store::ThreadUse::tid) != process.threads.end();
}

std::string Wanted(const SelectionFlags& flags) {
  if (flags.pid == 0) return fmt::format("thread {}", flags.tid);
  if (flags.tid == 0) return fmt::format("process {}", flags.pid);
  return fmt::format("thread {} of process {}", flags.tid, flags.pid);
}

// "411 python3, 500 sh and 3 more"
template <class Process>
std::string NameSome(const std::vector<Process>& processes) {
  if (processes.empty()) return "none";
  std::string names;
  const size_t shown = std::min(processes.size(), kProcessesNamed);
  for (size_t i = 0; i < shown; ++i)
    names += fmt::format("{}{} {}", i == 0 ? "" : ", ", processes[i].pid, processes[i].name);
  if (processes.size() > shown) names += fmt::format(" and {} more", processes.size() - shown);
  return names;
}

// The only process that matches. `none` is the error where none does: what was wanted, and what there is.
template <class Process, class Matches>
Result<Id128> TheOne(const std::vector<Process>& processes, const Matches& matches,
                     const SelectionFlags& flags, fmt::format_string<std::string, std::string> none) {
  const auto found = std::ranges::find_if(processes, matches);
  if (found == processes.end())
    return Fail(ErrorCode::kNotFound, fmt::format(none, Wanted(flags), NameSome(processes)));
  const auto another = std::ranges::find_if(found + 1, processes.end(), matches);
  if (another != processes.end())
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{} matches several: {} since {}, {} since {}; select one with --from and --to",
                            Wanted(flags), found->name, FormatUtc(found->started_ns), another->name,
                            FormatUtc(another->started_ns)));
  return found->process;
}

Status SelectProcess(store::Store& store, const SelectionFlags& flags, model::Selection& selection) {
  if (flags.pid == 0 && flags.tid == 0) return {};
  ASSIGN_OR_RETURN(const std::vector<store::ProcessUse> processes, store::ReadProcesses(store, selection));
  ASSIGN_OR_RETURN(const Id128 one,
                   TheOne(
                       processes, [&](const store::ProcessUse& process) { return Matches(process, flags); },
                       flags, "no samples of {} in this time; processes with samples: {}"));
  selection.processes = {one};
  if (flags.tid != 0) selection.tid = flags.tid;
  return {};
}

// Processes that ran in the selection's time, sampled or not.
Status SelectAnyProcess(store::Store& store, const SelectionFlags& flags, model::Selection& selection) {
  if (flags.pid == 0) return {};
  ASSIGN_OR_RETURN(
      const std::vector<model::Process> processes,
      store::ReadTable(store, model::kProcesses,
                       "WHERE started_ns < ? AND coalesce(exited_ns >= ?, true) ORDER BY pid, started_ns",
                       {{selection.to_ns, selection.from_ns}}));
  ASSIGN_OR_RETURN(const Id128 one,
                   TheOne(
                       processes, [&](const model::Process& process) { return process.pid == flags.pid; },
                       flags, "no {} in this time; processes: {}"));
  selection.processes = {one};
  return {};
}

Status SelectDevice(store::Store& store, const SelectionFlags& flags, model::Selection& selection) {
  if (!flags.device.has_value()) return {};
  ASSIGN_OR_RETURN(const std::vector<store::GpuDevice> devices, store::ReadDevices(store));
  const auto found = std::ranges::find(devices, *flags.device, &store::GpuDevice::ordinal);
  if (found == devices.end()) {
    std::string names;
    for (const store::GpuDevice& device : devices)
      names += fmt::format("{}{} {}", names.empty() ? "" : ", ", device.ordinal, device.name);
    return Fail(ErrorCode::kNotFound,
                fmt::format("no device {}; devices: {}", *flags.device, names.empty() ? "none" : names));
  }
  const auto another = std::ranges::find(found + 1, devices.end(), *flags.device, &store::GpuDevice::ordinal);
  if (another != devices.end())
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("device {} matches several, {} and {}: the recordings are from different hosts",
                            *flags.device, found->uuid, another->uuid));
  selection.device = found->device;
  selection.stream = flags.stream;
  return {};
}

}  // namespace

void AddTimeFlags(CLI::App& command, SelectionFlags& flags) {
  const CLI::Validator moment(CheckMoment, "SECONDS|UTC");
  command.add_option("--from", flags.from, "Only from this time on: seconds after the start, or UTC")
      ->check(moment);
  command.add_option("--to", flags.to, "Only before this time")->check(moment);
}

void AddSelectionFlags(CLI::App& command, SelectionFlags& flags) {
  AddTimeFlags(command, flags);
  command.add_option("--pid", flags.pid, "Only this process")->check(WholeNumber("PID", 1, kMaxPid));
  command.add_option("--tid", flags.tid, "Only this thread")->check(WholeNumber("TID", 1, kMaxPid));
  command.add_option("--filter", flags.filter, "Only stacks with a frame whose name contains this");
  CLI::Option* device =
      command.add_option("--device", flags.device, "Only GPU work on this device (0, 1, …)")
          ->check(WholeNumber("N", 0));
  command.add_option("--stream", flags.stream, "Only GPU work on this stream of --device")
      ->check(WholeNumber("N", 0))
      ->needs(device);
  command.add_flag("--while-gpu-idle", flags.while_gpu_idle, "Only CPU time while all used GPUs were idle");
}

std::string ApiTimeParameters(const SelectionFlags& flags) {
  std::string parameters;
  std::optional<int64_t> from_ns;
  for (const auto& [option, name, text] :
       {std::tuple("--from", "from_us", flags.from), std::tuple("--to", "to_us", flags.to)}) {
    if (text.empty()) continue;
    const std::optional<int64_t> utc_ns = ParseUtc(text);
    if (!utc_ns.has_value())
      throw CLI::ValidationError(
          option, fmt::format("of a server takes UTC (2026-11-21T01:32:05), not seconds ({})", text));
    if (from_ns.has_value() && *utc_ns <= *from_ns)
      throw CLI::ValidationError(option, fmt::format("{} is not after --from {}", text, flags.from));
    from_ns = utc_ns;
    parameters += fmt::format("&{}={}", name, *utc_ns / kNanosPerMicro);
  }
  return parameters;
}

Result<model::Selection> Select(store::Store& store, const SelectionFlags& flags) {
  model::Selection selection;
  TRY(SelectTime(store, flags, selection));
  TRY(SelectProcess(store, flags, selection));
  TRY(SelectDevice(store, flags, selection));
  selection.filter = flags.filter;
  selection.while_gpu_idle = flags.while_gpu_idle;
  return selection;
}

Result<model::Selection> SelectAmongAll(store::Store& store, const SelectionFlags& flags) {
  model::Selection selection;
  TRY(SelectTime(store, flags, selection));
  TRY(SelectAnyProcess(store, flags, selection));
  TRY(SelectDevice(store, flags, selection));
  return selection;
}

}  // namespace gpusonde::app
