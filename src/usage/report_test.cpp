// SPDX-License-Identifier: Apache-2.0
#include "usage/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "base/time.h"

namespace gpusonde::usage {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr double kHour = 3600e9;

Group Of(const std::string& name, double busy_hours, double idle_hours, double unobserved_hours) {
  Group group{.name = name, .processes = {{5, 1}}, .devices = {{6, 0}}, .use = {}};
  group.use.busy_ns = busy_hours * kHour;
  group.use.idle_ns = idle_hours * kHour;
  group.use.unobserved_ns = unobserved_hours * kHour;
  group.use.held_ns = static_cast<int64_t>((busy_hours + idle_hours + unobserved_hours) * kHour);
  return group;
}

Usage TwoPods() {
  Usage usage{.range = {0, int64_t{24} * 3600 * kNanosPerSecond},
              .by = {By::kPod},
              .devices = {{6, 0}, {6, 1}},
              .groups = {Of("ml/trainer-0", 18, 6, 0), Of("", 1, 2, 1)}};
  usage.groups[1].sampled_busy_ns = 0.25 * kHour;
  usage.groups[1].sampled_ns = kHour;
  return usage;
}

TEST(UsageReport, TextSaysWhoWastesWhat) {
  const std::string text = ToText(TwoPods(), 2.5, {});
  EXPECT_THAT(text,
              HasSubstr("1970-01-01 00:00:00 to 1970-01-02 00:00:00 UTC, 2 GPUs: held for 28.00 GPU hours, "
                        "19.00 busy (68 %), 8.00 idle (29 %), 1.00 not observed (4 %)\n"));
  EXPECT_THAT(text, HasSubstr("POD"));
  EXPECT_THAT(text,
              HasSubstr("ml/trainer-0     1          1      24.00  18.00  6.00                           "
                        "75 %               15.00"));
  EXPECT_THAT(text, HasSubstr("(no pod)         1          1       4.00   1.00  2.00          1.00  33 % (25 "
                              "to 50)     25 %       5.00"));
  EXPECT_THAT(ToText(TwoPods(), std::nullopt, {}), Not(HasSubstr("IDLE COST")));
}

TEST(UsageReport, TextOfSeveralHostsSaysWhatIsMissing) {
  Usage usage = TwoPods();
  usage.coverage = Coverage{.hosts = 200, .until_ns = 43'200 * kNanosPerSecond};
  EXPECT_THAT(ToText(usage, std::nullopt, {}),
              HasSubstr("\n200 hosts, summed until 1970-01-01 12:00:00 UTC\n"));
  for (int i = 0; i < 7; ++i)
    usage.coverage->gaps.push_back({.host = "node-" + std::to_string(i), .why = "not read yet"});
  EXPECT_THAT(
      ToText(usage, std::nullopt, {}),
      HasSubstr("UTC; incomplete: node-0 (not read yet), node-1 (not read yet), node-2 (not read yet), "
                "node-3 (not read yet), node-4 (not read yet) and 2 more\n"));
}

TEST(UsageReport, WhatIsAllocatedWithoutAProcessIsSaid) {
  Usage usage = TwoPods();
  usage.groups[0].without_process_ns = 6 * kHour;
  const std::string text = ToText(usage, std::nullopt, {});
  EXPECT_THAT(text,
              HasSubstr("8.00 idle (29 %) of which 6.00 allocated without a process, 1.00 not observed"));
  EXPECT_THAT(text, HasSubstr("NO PROCESS"));
  EXPECT_THAT(ToText(TwoPods(), std::nullopt, {}), Not(HasSubstr("NO PROCESS")));
  EXPECT_THAT(ToCsv(usage, std::nullopt),
              HasSubstr("24.000000,18.000000,6.000000,0.000000,0.7500,0.7500,0.7500,,,6.000000\r\n"));
  EXPECT_EQ(nlohmann::json::parse(ToJson(usage, std::nullopt))["total"]["without_process_ns"],
            21'600'000'000'000);
}

TEST(UsageReport, ALabelIsNamed) {
  Usage usage = TwoPods();
  usage.by = {By::kLabel, "a,b"};
  EXPECT_THAT(ToText(usage, std::nullopt, {}), HasSubstr("(no label a,b)"));
  EXPECT_THAT(ToCsv(usage, std::nullopt), testing::StartsWith("\"label:a,b\",gpus,"));
  usage.labels = {"a,b", "team"};
  const auto json = nlohmann::json::parse(ToJson(usage, std::nullopt));
  EXPECT_EQ(json["by"], "label:a,b");
  EXPECT_EQ(json["labels"], (std::vector<std::string>{"a,b", "team"}));
}

TEST(UsageReport, TextFitsTheTerminal) {
  for (const size_t width : {40u, 80u, 120u})
    for (const std::string& line : [&] {
           std::vector<std::string> lines(1);
           for (const char c : ToText(TwoPods(), 2.5, {.width = width}))
             c == '\n' ? lines.emplace_back() : lines.back() += c;
           return lines;
         }())
      EXPECT_LE(line.size(), width) << line;
}

TEST(UsageReport, ShortTimesAreInSeconds) {
  Usage usage = TwoPods();
  usage.groups = {Of("p", 0.001, 0, 0)};
  EXPECT_THAT(ToText(usage, std::nullopt, {}), HasSubstr("held for 3.60 GPU seconds"));
}

TEST(UsageReport, NothingHeldIsSaid) {
  Usage usage = TwoPods();
  usage.groups.clear();
  usage.simulated = true;
  EXPECT_EQ(
      ToText(usage, std::nullopt, {}),
      "simulated GPUs, 1970-01-01 00:00:00 to 1970-01-02 00:00:00 UTC, 2 GPUs: no process held a GPU\n");
}

TEST(UsageReport, ATimeWithoutDataIsNotCalledOneOf1970) {
  const Usage usage{.range = {}, .by = {By::kPod}, .groups = {}};
  EXPECT_EQ(ToText(usage, std::nullopt, {}), "no data of this time\n");
  const auto json = nlohmann::json::parse(ToJson(usage, std::nullopt));
  EXPECT_TRUE(json["from_us"].is_null());
  EXPECT_TRUE(json["to_us"].is_null());
}

TEST(UsageReport, CsvOfHostileNames) {
  Usage usage = TwoPods();
  usage.groups[0].name = "=cmd|' /C calc'!A0,\"\x1b[31m\n";
  const std::string csv = ToCsv(usage, 2.5);
  EXPECT_THAT(csv, HasSubstr("pod,gpus,processes,gpu_hours,"));
  EXPECT_THAT(csv,
              HasSubstr("\r\n\"'=cmd|' /C calc'!A0,\"\"\\x1b[31m\\x0a\",1,1,24.000000,18.000000,6.000000,"
                        "0.000000,0.7500,0.7500,0.7500,,15.0000,0.000000\r\n"));
  EXPECT_THAT(
      csv,
      HasSubstr("\r\n\"(no pod)\",1,1,4.000000,1.000000,2.000000,1.000000,0.3333,0.2500,0.5000,0.2500,"));
}

TEST(UsageReport, JsonHasTheSameFigures) {
  const auto json = nlohmann::json::parse(ToJson(TwoPods(), std::nullopt));
  EXPECT_EQ(json["by"], "pod");
  EXPECT_EQ(json["gpus"], 2);
  EXPECT_EQ(json["total"]["busy_ns"], 68'400'000'000'000);
  EXPECT_EQ(json["groups"][0]["name"], "ml/trainer-0");
  EXPECT_EQ(json["groups"][0]["busy_share"]["low"], 0.75);
  EXPECT_EQ(json["groups"][0]["idle_cost"], nullptr);
  EXPECT_EQ(json["groups"][1]["sampled_utilization"], 0.25);
  EXPECT_EQ(json["omitted"], 0);
  Usage many = TwoPods();
  many.groups.assign(1500, many.groups[0]);
  EXPECT_EQ(nlohmann::json::parse(ToJson(many, 1.0))["omitted"], 500);
}

}  // namespace
}  // namespace gpusonde::usage
