// SPDX-License-Identifier: Apache-2.0
#include "top/render.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/display_width.h"

namespace gpusonde::top {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

Snapshot Some() {
  std::vector<std::optional<double>> busy;
  for (int i = 0; i < kHistory; ++i)
    busy.push_back(i < 10 ? std::nullopt : std::optional(i * 100.0 / kHistory));
  return {.title = "this machine",
          .mode = "up",
          .now_us = 1'763'687'900'000'000,
          .cpus = 2,
          .cpus_busy = 1.31,
          .gpus = {{.ordinal = 0,
                    .name = "NVIDIA H100 (simulated)",
                    .simulated = true,
                    .busy = busy,
                    .busy_now = 54.4,
                    .memory_gib = 12.06,
                    .memory_max_gib = 80,
                    .power_w = 310,
                    .power_limit_w = 700,
                    .temperature_c = 61,
                    .clock_mhz = 1980,
                    .slowed_by = "power cap"},
                   {.ordinal = 1, .name = "T4", .busy = {}, .slowed_by = ""}},
          .processes = {{.pid = 411,
                         .command = "python3 train.py --workers 2",
                         .gpus = {0, 1},
                         .busy = 108,
                         .kernels_per_second = 9800,
                         .memory_bytes = 12.0 * (1 << 30),
                         .cpu = 98},
                        {.pid = 77,
                         .command = "hold \x1b[31m訓練",
                         .gpus = {0},
                         .busy = 0,
                         .kernels_per_second = 0.4,
                         .memory_bytes = 13.0 * (1 << 30),
                         .cpu = 120}},
          .incidents = {{.process = "hpc\x07 (411)",
                         .sentence =
                             "Steps slowed 2.2× from 01:16:40. CPU contention (0.96): other programs ran."}},
          .notices = {}};
}

View Width(size_t width) { return {.terminal = {.width = width}, .problem = ""}; }

std::string Text(const std::vector<std::string>& lines) { return fmt::format("{}", fmt::join(lines, "\n")); }

TEST(Render, ALowerBoundOfBusyTimeIsMarked) {
  Snapshot snapshot = Some();
  for (Gpu& gpu : snapshot.gpus) gpu.busy_at_least = true;
  EXPECT_THAT(Text(Render(snapshot, Width(80))),
              testing::AllOf(HasSubstr("0 simulated ≥ 54 %"), HasSubstr("1                - ")));
}

TEST(Render, In80ColumnsNothingIsMissing) {
  EXPECT_THAT(Render(Some(), Width(80)),
              ElementsAre("gpusonde top · this machine · 01:18:20 UTC · 1.3 of 2 CPUs busy",
                          "GPU          BUSY 5 MIN                MEMORY     POWER  TEMP    CLOCK SLOWED BY",
                          "0 simulated  54 %   ▂▃▃▄▄▅▆▆▇▇█ 12.1/80.0 GiB 310/700 W 61 °C 1980 MHz power cap",
                          "1               -                           -         -     -        -", "",
                          "hpc\\x07 (411): Steps slowed 2.2× from 01:16:40. CPU contention (0.96): other",
                          "  programs ran.", "", "PID GPU  BUSY KERNELS/S   MEMORY   CPU COMMAND",
                          "411 0,1 108 %      9800 12.0 GiB  98 % python3 train.py --workers 2",
                          " 77 0     0 %       0.4 13.0 GiB 120 % hold \\x1b[31m訓練"));
}

TEST(Render, WhatTheSmsDoIsAColumnWhereItIsRead) {
  Snapshot snapshot = Some();
  snapshot.gpus[0].sm_active = 41.2;
  snapshot.gpus[0].tensor = 12;
  const auto lines = Render(snapshot, Width(99));
  EXPECT_THAT(lines[1], HasSubstr("BUSY    SM TENSOR 5 MIN"));
  EXPECT_THAT(lines[2], HasSubstr("54 %  41 %   12 % "));
  const auto narrow = Render(snapshot, Width(70));
  EXPECT_THAT(narrow[2], HasSubstr("54 %  41 % "));
  EXPECT_THAT(narrow[1], Not(HasSubstr("CLOCK")));
}

TEST(Render, TheProfilingOverheadIsAColumnWhereAProcessHasABudget) {
  Snapshot snapshot = Some();
  snapshot.processes[0].budget = 0.5;
  snapshot.processes[0].spent = 0.432;
  snapshot.processes[0].cost = 2.13;
  snapshot.processes[0].cost_low = -0.2;
  snapshot.processes[0].cost_high = 4.06;
  const std::string text = Text(Render(snapshot, Width(120)));
  EXPECT_THAT(text, HasSubstr("CPU    OVERHEAD                COST  COMMAND"));
  EXPECT_THAT(text, HasSubstr("98 %  0.43/0.5 %  2.1 % (0.0 to 4.1)  python3")) << "no cost is below 0";
  EXPECT_THAT(text, HasSubstr("120 %           -                   -  hold"));
  const std::string narrow = Text(Render(snapshot, Width(80)));
  EXPECT_THAT(narrow, HasSubstr("0.43/0.5 % python3 train.py --workers 2"));
  EXPECT_THAT(narrow, Not(HasSubstr("COST"))) << "the command matters more";
  snapshot.processes[0].cost = -2.6;
  EXPECT_THAT(Text(Render(snapshot, Width(120))), HasSubstr("0.0 % (0.0 to 4.1)"));
  snapshot.processes[0].cost.reset();
  EXPECT_THAT(Text(Render(snapshot, Width(120))), HasSubstr("98 %  0.43/0.5 %     -  python3"))
      << "not known yet";
}

TEST(Render, ColumnsStayWhereTheyAreWhileReadingsChange) {
  Snapshot full = Some();
  full.gpus[0].busy_now = 100;
  full.processes[0].cpu = 100;
  Snapshot idle = full;
  idle.gpus[0].busy_now = 0;
  idle.gpus[0].memory_gib = 0.4;
  idle.gpus[0].power_w = 69;
  idle.gpus[0].clock_mhz = 345;
  for (Process& process : idle.processes) {
    process.cpu = 0;
    process.busy = process.kernels_per_second = 0;
    process.memory_bytes = 420 << 20;
  }
  const auto titles = [](const Snapshot& snapshot) {
    const auto lines = Render(snapshot, Width(80));
    const auto processes =
        std::ranges::find_if(lines, [](const auto& line) { return line.starts_with("PID"); });
    return std::pair(lines.at(1), processes == lines.end() ? "" : *processes);
  };
  EXPECT_THAT(titles(full).second, HasSubstr("KERNELS/S"));
  EXPECT_EQ(titles(full), titles(idle));
}

TEST(Render, MigInstancesAreNamedByTheirIds) {
  Snapshot snapshot = Some();
  snapshot.gpus[1] = {
      .ordinal = 0, .name = "NVIDIA H100 MIG 1g.10gb (instance 3/0)", .busy = {}, .slowed_by = ""};
  EXPECT_THAT(Render(snapshot, Width(100))[3], testing::StartsWith("0 MIG 3/0"));
}

TEST(Render, In60ColumnsWholeColumnsGoAndNoNumberIsCut) {
  const std::string text = Text(Render(Some(), Width(60)));
  EXPECT_THAT(text, HasSubstr("12.1/80.0 GiB"));
  EXPECT_THAT(text, HasSubstr("0 simulated  54 %"));
  EXPECT_THAT(text, HasSubstr("power c"));
  EXPECT_THAT(text, Not(HasSubstr("MHz")));
  EXPECT_THAT(text, HasSubstr("411 0,1 108 %      9800 12.0 GiB  98 % python3"));
}

TEST(Render, NoLineIsWiderThanTheTerminalNorAreThereMoreThanItsRows) {
  Snapshot snapshot = Some();
  for (int i = 0; i < 16; ++i) {
    snapshot.gpus.push_back(snapshot.gpus[static_cast<size_t>(i % 2)]);
    snapshot.processes.push_back(snapshot.processes[static_cast<size_t>(i % 2)]);
    snapshot.incidents.push_back(snapshot.incidents[0]);
    snapshot.incidents[0].sentence = std::string(50, 'x') + "\t訓練 \x1b[2J";
  }
  snapshot.notices = {"A very long notice about a disk that is full", "x"};
  for (size_t width = 1; width <= 200; width += width < 100 ? 1 : 7)
    for (size_t height = 1; height <= 50; ++height) {
      const auto lines =
          Render(snapshot,
                 {.terminal = {.width = width}, .height = height, .problem = "can't reach 127.0.0.1:7171"});
      EXPECT_EQ(lines.size(), height);
      for (const std::string& line : lines) {
        ASSERT_LE(DisplayWidth(line), width) << line;
        ASSERT_EQ(line.find('\x1b'), std::string::npos) << line;
      }
    }
}

TEST(Render, SaysHowMuchThereIsNoRoomFor) {
  Snapshot snapshot = Some();
  snapshot.processes.resize(40, snapshot.processes[0]);
  const auto lines =
      Render(snapshot, {.terminal = {.width = 80}, .height = 24, .sort = SortBy::kCpu, .problem = ""});
  EXPECT_EQ(lines[22], "… 27 more processes");
  EXPECT_EQ(lines[23], "q quit · b busy · m memory · k kernels · c cpu (sorted)");
}

TEST(Render, SentencesAreCutOnlyWhereTablesNeedTheRoom) {
  Snapshot snapshot = Some();
  snapshot.incidents.assign(7, snapshot.incidents[0]);
  const auto lines = [&] {
    return Render(snapshot, {.terminal = {.width = 80}, .height = 24, .problem = ""});
  };
  EXPECT_THAT(lines(), Not(Contains(HasSubstr("more lines"))));
  snapshot.processes.resize(5, snapshot.processes[0]);
  EXPECT_THAT(lines(), Contains("… 4 more lines"));
  EXPECT_THAT(lines(), Not(Contains(HasSubstr("more processes"))));
}

TEST(Render, AnIncidentBeginsToBeToldInTheSmallestTerminal) {
  const auto lines = Render(Some(), {.terminal = {.width = 40}, .height = 10, .problem = ""});
  EXPECT_THAT(lines, Contains("hpc\\x07 (411): Steps slowed 2.2× from…"));
}

TEST(Render, ProcessesAreSortedByWhatWasAskedFor) {
  const auto first = [](SortBy sort) {
    View view = Width(80);
    view.sort = sort;
    const auto lines = Render(Some(), view);
    return lines[lines.size() - 2].substr(0, 3);
  };
  EXPECT_EQ(first(SortBy::kBusy), "411");
  EXPECT_EQ(first(SortBy::kMemory), " 77");
  EXPECT_EQ(first(SortBy::kKernels), "411");
  EXPECT_EQ(first(SortBy::kCpu), " 77");
}

TEST(Render, WithoutWidthNothingIsCut) {
  Snapshot snapshot = Some();
  snapshot.processes[0].command = std::string(500, 'x');
  const std::string text = Text(Render(snapshot, Width(0)));
  EXPECT_THAT(text, HasSubstr(snapshot.processes[0].command));
  EXPECT_THAT(text, HasSubstr("NVIDIA H100 (simulated)"));
  EXPECT_THAT(text, Not(HasSubstr("q quit")));
}

TEST(Render, ACommandThatDoesNotFitIsShownWithoutItsFolders) {
  Snapshot snapshot = Some();
  snapshot.processes[0].command =
      "/opt/conda/envs/a-long-name/bin/python3 /home/me/project/train.py --rank 3 /tmp/";
  EXPECT_THAT(Text(Render(snapshot, Width(200))), HasSubstr(snapshot.processes[0].command));
  EXPECT_THAT(Text(Render(snapshot, Width(80))), HasSubstr("98 % python3 train.py --rank 3 tmp/"));
  snapshot.processes[0].command = "/ ";
  EXPECT_THAT(Text(Render(snapshot, Width(45))), HasSubstr("12.0 GiB /"));
}

TEST(Render, AnOldSnapshotSaysHowOld) {
  View view = Width(80);
  view.age_s = kOldS - 1;
  EXPECT_THAT(Render(Some(), view)[0], Not(HasSubstr("ago")));
  view.age_s = 63;
  EXPECT_THAT(Render(Some(), view)[0], HasSubstr("01:18:20 UTC · read 63 s ago · 1.3 of 2 CPUs busy"));
}

TEST(Render, ColourIsForTerminalsThatHaveIt) {
  View view = Width(80);
  EXPECT_THAT(Text(Render(Some(), view)), Not(HasSubstr("\x1b")));
  view.terminal.colour = true;
  EXPECT_THAT(Render(Some(), view)[0], HasSubstr("\x1b[1mgpusonde top"));
}

TEST(Render, WithoutDataItSaysSo) {
  EXPECT_THAT(Render({.title = "x", .mode = "up"}, Width(80)),
              ElementsAre("gpusonde top · x", "no data yet"));
  EXPECT_THAT(Render({.title = "x", .mode = "up", .now_us = 0}, Width(80)),
              ElementsAre("gpusonde top · x · 00:00:00 UTC", "no GPUs: `gpusonde doctor` says why"));
}

TEST(Render, GpusOfAProcessAreShort) {
  Snapshot snapshot = Some();
  snapshot.processes.resize(1);
  for (const auto& [gpus, text] :
       std::vector<std::pair<std::vector<int64_t>, std::string>>{{{0, 1, 2, 3, 4, 5, 6, 7}, "411 0-7 "},
                                                                 {{0, 1, 3, 4, 5}, "411 0,1,3-5 "},
                                                                 {{-1, -1, 0}, "411 ?,?,0 "}}) {
    snapshot.processes[0].gpus = gpus;
    EXPECT_THAT(Render(snapshot, Width(80)).back(), HasSubstr(text));
  }
}

TEST(Sparkline, HasOneBlockPerPartAndASpaceForTheUnknown) {
  EXPECT_EQ(Sparkline(std::vector<std::optional<double>>{0, 13, 50, 100, 1e9, -5, std::nullopt, 99}, 8),
            "▁▂▅██▁ █");
  EXPECT_EQ(Sparkline(std::vector<std::optional<double>>{0, 100, std::nullopt, 100}, 2), "▅█");
  EXPECT_EQ(Sparkline(std::vector<std::optional<double>>{100}, 3), "  █");
  EXPECT_EQ(Sparkline({}, 3), "   ");
}

}  // namespace
}  // namespace gpusonde::top
