// SPDX-License-Identifier: Apache-2.0
#include "top/render.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <sstream>
#include <tuple>
#include <utility>

#include "base/display_width.h"
#include "base/printable.h"
#include "base/shell_word.h"
#include "base/text_table.h"
#include "base/time.h"
#include "model/mig_name.h"

namespace gpusonde::top {
namespace {

constexpr size_t kMinSparkline = 8, kMaxSparkline = 30;
constexpr size_t kMinText = 8, kMaxText = 4096;
// Of a command, which says whose the numbers are: "python3 train.py".
constexpr size_t kMinCommand = 16;

// Readings are as wide as they get on an ordinary GPU, so that columns don't move from one screen to the
// next.

std::string Percent(const std::optional<double>& value) {
  return value.has_value() ? fmt::format("{:3.0f} %", *value) : "-";
}

// " 9.1/80.0 GiB", "9.1 GiB" or "-".
std::string OfMost(const std::optional<double>& value, const std::optional<double>& most, int digits,
                   std::string_view unit) {
  if (!value.has_value()) return "-";
  if (!most.has_value()) return fmt::format("{:.{}f} {}", *value, digits, unit);
  const std::string limit = fmt::format("{:.{}f}", *most, digits);
  return fmt::format("{:{}.{}f}/{} {}", *value, limit.size(), digits, limit, unit);
}

std::string Bytes(const std::optional<double>& bytes) {
  constexpr double kMebi = 1 << 20, kGibi = 1 << 30;
  if (!bytes.has_value()) return "-";
  return *bytes < kGibi ? fmt::format("{:4.0f} MiB", *bytes / kMebi)
                        : fmt::format("{:4.1f} GiB", *bytes / kGibi);
}

std::string Rate(const std::optional<double>& per_second) {
  if (!per_second.has_value()) return "-";
  return *per_second > 0 && *per_second < 10 ? fmt::format("{:.1f}", *per_second)
                                             : fmt::format("{:.0f}", *per_second);
}

// "0.43/0.5 %": the profiling overhead lately, of its budget.
std::string SpentOf(const Process& process) {
  if (!process.spent.has_value() || !process.budget.has_value()) return "-";
  return fmt::format("{:.2f}/{:g} %", *process.spent, *process.budget);
}

// "2.1 % (1.9 to 2.3)": what it costs while it goes on. Nothing costs less than 0, though the estimate of a
// small cost may be below.
std::string CostOf(const Process& process) {
  if (!process.cost.has_value() || !process.cost_low.has_value() || !process.cost_high.has_value())
    return "-";
  return fmt::format("{:.1f} % ({:.1f} to {:.1f})", std::max(*process.cost, 0.0),
                     std::max(*process.cost_low, 0.0), std::max(*process.cost_high, 0.0));
}

// "0", "0,2", "0-7"; what is known only from its work has no number.
std::string Ordinals(const std::vector<int64_t>& ordinals) {
  std::vector<std::string> parts;
  for (size_t i = 0; i < ordinals.size();) {
    size_t end = i + 1;
    while (end < ordinals.size() && ordinals[end] == ordinals[end - 1] + 1) ++end;
    if (ordinals[i] < 0) {
      parts.emplace_back("?");
      ++i;
      continue;
    }
    if (end - i > 2) {
      parts.push_back(fmt::format("{}-{}", ordinals[i], ordinals[end - 1]));
      i = end;
    } else {
      parts.push_back(fmt::format("{}", ordinals[i++]));
    }
  }
  return fmt::format("{}", fmt::join(parts, ","));
}

std::string StateOf(const Gpu& gpu) {
  std::string state = gpu.xid.has_value() ? fmt::format("XID {}", *gpu.xid) : "";
  if (!gpu.slowed_by.empty()) state += (state.empty() ? "" : ", ") + gpu.slowed_by;
  return Printable(state);
}

std::vector<std::string> GpuTable(const std::vector<Gpu>& gpus, size_t width) {
  if (gpus.empty()) return {};
  TextColumn label{.title = "GPU"};
  TextColumn busy{.title = "BUSY", .right = true, .leave_out = 1};
  // Only where GPM is read.
  TextColumn activity{.title = "SM", .right = true, .leave_out = 2};
  TextColumn tensor{.title = "TENSOR", .right = true, .leave_out = 7};
  const bool gpm = std::ranges::any_of(gpus, [](const Gpu& gpu) { return gpu.sm_active.has_value(); });
  TextColumn history{.title = "5 MIN",
                     .leave_out = 5,
                     .min_width = kMinSparkline,
                     .max_width = kMaxSparkline,
                     .draw = [&gpus](size_t row, size_t room) { return Sparkline(gpus[row].busy, room); }};
  TextColumn memory{.title = "MEMORY", .right = true, .leave_out = 3};
  TextColumn power{.title = "POWER", .right = true, .leave_out = 6};
  TextColumn temperature{.title = "TEMP", .right = true, .leave_out = 8};
  TextColumn clock{.title = "CLOCK", .right = true, .leave_out = 9};
  TextColumn state{.title = "SLOWED BY", .leave_out = 4, .min_width = kMinText, .max_width = kMaxText};
  // In 80 columns the history gets its room.
  TextColumn name{.title = "NAME", .leave_out = 10, .min_width = 20, .max_width = kMaxText};
  for (const Gpu& gpu : gpus) {
    const std::string_view instance = model::MigIdsOf(gpu.name);
    label.cells.push_back((gpu.ordinal < 0 ? "?" : fmt::format("{}", gpu.ordinal)) +
                          (instance.empty() ? "" : " MIG " + Printable(instance)) +
                          (gpu.simulated ? " simulated" : ""));
    busy.cells.push_back((gpu.busy_at_least && gpu.busy_now.has_value() ? "≥" : "") + Percent(gpu.busy_now));
    activity.cells.push_back(Percent(gpu.sm_active));
    tensor.cells.push_back(Percent(gpu.tensor));
    history.cells.emplace_back();
    memory.cells.push_back(OfMost(gpu.memory_gib, gpu.memory_max_gib, 1, "GiB"));
    power.cells.push_back(OfMost(gpu.power_w, gpu.power_limit_w, 0, "W"));
    temperature.cells.push_back(gpu.temperature_c.has_value() ? fmt::format("{:.0f} °C", *gpu.temperature_c)
                                                              : "-");
    clock.cells.push_back(gpu.clock_mhz.has_value() ? fmt::format("{:4.0f} MHz", *gpu.clock_mhz) : "-");
    state.cells.push_back(StateOf(gpu));
    name.cells.push_back(Printable(gpu.name));
  }
  std::vector<TextColumn> columns{label, busy, history, memory, power, temperature, clock, state, name};
  if (gpm) columns.insert(columns.begin() + 2, {activity, tensor});
  return LayOutTable(columns, width);
}

double KeyOf(const Process& process, SortBy sort) {
  switch (sort) {
    case SortBy::kBusy:
      return process.busy.value_or(-1);
    case SortBy::kMemory:
      return process.memory_bytes.value_or(-1);
    case SortBy::kKernels:
      return process.kernels_per_second.value_or(-1);
    case SortBy::kCpu:
      return process.cpu;
  }
  return 0;
}

std::vector<std::string> ProcessTable(std::vector<Process> processes, SortBy sort, size_t width) {
  if (processes.empty()) return {};
  std::ranges::stable_sort(processes, [sort](const Process& a, const Process& b) {
    return std::tuple(-KeyOf(a, sort), a.pid) < std::tuple(-KeyOf(b, sort), b.pid);
  });
  TextColumn pid{.title = "PID", .right = true};
  TextColumn gpu{.title = "GPU", .leave_out = 5};
  TextColumn busy{.title = "BUSY", .right = true, .leave_out = 1};
  TextColumn kernels{.title = "KERNELS/S", .right = true, .leave_out = 4};
  TextColumn memory{.title = "MEMORY", .right = true, .leave_out = 3};
  TextColumn cpu{.title = "CPU", .right = true, .leave_out = 6};
  // Only where a process has a budget.
  TextColumn spent{.title = "OVERHEAD", .right = true, .leave_out = 7};
  TextColumn cost{.title = "COST", .right = true, .leave_out = 8};
  TextColumn command{.title = "COMMAND", .leave_out = 2, .min_width = kMinCommand, .max_width = kMaxText};
  command.draw = [&processes](size_t row, size_t room) {
    const std::string whole = Printable(processes[row].command);
    return DisplayWidth(whole) <= room ? whole : CutToWidth(WithoutFolders(whole), room);
  };
  for (const Process& process : processes) {
    pid.cells.push_back(fmt::format("{}", process.pid));
    gpu.cells.push_back(Ordinals(process.gpus));
    busy.cells.push_back(Percent(process.busy));
    kernels.cells.push_back(Rate(process.kernels_per_second));
    memory.cells.push_back(Bytes(process.memory_bytes));
    cpu.cells.push_back(Percent(process.cpu));
    spent.cells.push_back(SpentOf(process));
    cost.cells.push_back(CostOf(process));
    command.cells.emplace_back();
  }
  std::vector<TextColumn> columns{pid, gpu, busy, kernels, memory, cpu, command};
  if (std::ranges::any_of(processes, [](const Process& process) { return process.budget.has_value(); }))
    columns.insert(columns.end() - 1, {spent, cost});
  return LayOutTable(columns, width);
}

// Joins as many of the parts as fit; the first is cut if even it doesn't.
std::string Fit(std::span<const std::string> parts, size_t width) {
  std::string line = width == 0 ? parts.front() : CutToWidth(parts.front(), width);
  for (const std::string& part : parts.subspan(1)) {
    if (width > 0 && DisplayWidth(line) + 3 + DisplayWidth(part) > width) break;
    line += " · " + part;
  }
  return line;
}

// HH:MM:SS of a time in UTC.
std::string ClockOf(int64_t time_us) {
  constexpr int64_t kBoundUs = int64_t{9'000'000'000} * 1'000'000;  // 2255
  return FormatUtcClock(std::clamp<int64_t>(time_us, 0, kBoundUs) * kNanosPerMicro);
}

std::string Header(const Snapshot& snapshot, int64_t age_s, size_t width) {
  std::vector<std::string> parts{"gpusonde top", Printable(snapshot.title)};
  if (snapshot.now_us.has_value()) parts.push_back(ClockOf(*snapshot.now_us) + " UTC");
  if (age_s >= kOldS) parts.push_back(fmt::format("read {} s ago", age_s));
  if (snapshot.cpus_busy.has_value())
    parts.push_back(snapshot.cpus.has_value()
                        ? fmt::format("{:.1f} of {:.0f} CPUs busy", *snapshot.cpus_busy, *snapshot.cpus)
                        : fmt::format("{:.1f} CPUs busy", *snapshot.cpus_busy));
  return Fit(parts, width);
}

std::string Keys(SortBy sort, size_t width) {
  std::vector<std::string> parts{"q quit"};
  constexpr std::string_view kKeys[] = {"b", "m", "k", "c"};
  for (size_t i = 0; i < std::size(kSortNames); ++i)
    parts.push_back(
        fmt::format("{} {}{}", kKeys[i], kSortNames[i], static_cast<size_t>(sort) == i ? " (sorted)" : ""));
  return Fit(parts, width);
}

// Wrapped at spaces; what is still too wide, such as a long name, is cut.
void AddWrapped(const std::string& text, size_t width, std::vector<std::string>& lines) {
  std::istringstream wrapped(Wrap(text, width, 2));
  for (std::string line; std::getline(wrapped, line);)
    lines.push_back(width == 0 ? line : CutToWidth(line, width));
}

std::vector<std::string> Sentences(const Snapshot& snapshot, size_t width) {
  std::vector<std::string> lines;
  for (const Incident& incident : snapshot.incidents)
    AddWrapped(fmt::format("{}: {}", incident.process.empty() ? "warning" : Printable(incident.process),
                           Printable(incident.sentence)),
               width, lines);
  for (const std::string& notice : snapshot.notices) AddWrapped("notice: " + Printable(notice), width, lines);
  return lines;
}

// Leaves at most `count` lines, and says how many more there are.
void Limit(std::vector<std::string>& lines, size_t count, std::string_view of, size_t width) {
  if (lines.size() <= count) return;
  const size_t kept = std::max<size_t>(count, 1) - 1;
  const std::string more = fmt::format("… {} more {}", lines.size() - kept, of);
  lines.resize(kept);
  lines.push_back(width == 0 ? more : CutToWidth(more, width));
}

// Leaves the first line, as what is slow matters more than how many lines there are.
void LeaveBeginning(std::vector<std::string>& lines, size_t width) {
  if (lines.size() <= 1) return;
  lines.resize(1);
  lines[0] = CutToWidth(lines[0] + "…", width);
}

}  // namespace

std::string Sparkline(std::span<const std::optional<double>> values, size_t width) {
  constexpr std::string_view kBlocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  const size_t columns = std::min(width, values.size());
  std::string line(width - columns, ' ');
  for (size_t column = 0; column < columns; ++column) {
    double sum = 0;
    int known = 0;
    const size_t end = (column + 1) * values.size() / columns;
    for (size_t i = column * values.size() / columns; i < end; ++i) {
      if (!values[i].has_value()) continue;
      sum += *values[i];
      ++known;
    }
    if (known == 0) {
      line += ' ';
      continue;
    }
    const double level = std::clamp(sum / known, 0.0, 100.0) / 100 * std::size(kBlocks);
    line += kBlocks[std::min(static_cast<size_t>(level), std::size(kBlocks) - 1)];
  }
  return line;
}

std::vector<std::string> Render(const Snapshot& snapshot, const View& view) {
  const size_t width = view.terminal.width;
  const bool live = view.height > 0;
  std::vector<std::string> gpus = GpuTable(snapshot.gpus, width);
  std::vector<std::string> processes = ProcessTable(snapshot.processes, view.sort, width);
  std::vector<std::string> sentences = Sentences(snapshot, width);
  if (live) {
    // The header, the titles of both tables, an empty line between them, the keys; why the data is old; and
    // an empty line above the sentences.
    const size_t other = 5 + (view.problem.empty() ? 0 : 1) + (sentences.empty() ? 0 : 1);
    const size_t room = view.height - std::min(view.height, other);
    // A third of the rest, and what the tables leave.
    const size_t table_rows = (gpus.empty() ? 0 : gpus.size() - 1) + snapshot.processes.size();
    if (const size_t most = std::max(room / 3, room - std::min(room, table_rows)); most > 1)
      Limit(sentences, most, "lines", width);
    else
      LeaveBeginning(sentences, width);
    const size_t rows = room - std::min(room, sentences.size());
    // Half of the rest for the processes, if they need it.
    const size_t for_processes = std::min(snapshot.processes.size(), std::max<size_t>(rows / 2, 1));
    Limit(gpus, std::max<size_t>(rows - std::min(rows, for_processes), 1) + 1, "GPUs", width);
    const size_t gpu_rows = gpus.empty() ? 0 : gpus.size() - 1;
    Limit(processes, std::max<size_t>(rows - std::min(rows, gpu_rows), 1) + 1, "processes", width);
  }
  std::vector<std::string> lines{view.terminal.Paint(Style::kBold, Header(snapshot, view.age_s, width))};
  const auto add = [&](std::vector<std::string>& table) {
    if (!table.empty()) table[0] = view.terminal.Paint(Style::kBold, table[0]);
    std::ranges::move(table, std::back_inserter(lines));
  };
  const auto say = [&](std::string_view text) { AddWrapped(std::string(text), width, lines); };
  if (!view.problem.empty())
    lines.push_back(view.terminal.Paint(
        Style::kRed, width == 0 ? Printable(view.problem) : CutToWidth(Printable(view.problem), width)));
  if (!snapshot.now_us.has_value())
    say("no data yet");
  else if (snapshot.gpus.empty())
    say("no GPUs: `gpusonde doctor` says why");
  else
    add(gpus);
  if (!sentences.empty()) {
    lines.emplace_back();
    std::ranges::move(sentences, std::back_inserter(lines));
  }
  if (snapshot.now_us.has_value() && !snapshot.gpus.empty()) {
    lines.emplace_back();
    if (!snapshot.processes.empty())
      add(processes);
    else
      say("no process uses a GPU");
  }
  if (!live) return lines;
  lines.resize(view.height - 1);
  lines.push_back(Keys(view.sort, width));
  return lines;
}

}  // namespace gpusonde::top
