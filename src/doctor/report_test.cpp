// SPDX-License-Identifier: Apache-2.0
#include "doctor/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace gpusonde::doctor {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr Capability kNeeded{"bpf", Use::kRecord, nullptr};
constexpr Capability kNice{"state_folder", Use::kDetail, nullptr};

Report ReportOf(Finding needed, Finding nice) {
  return {.host = "node7", .kernel = "6.1", .examined = {{&kNeeded, needed}, {&kNice, nice}}};
}

TEST(DoctorReport, RecordingNeedsOnlyWhatItUses) {
  EXPECT_TRUE(ReportOf(Works("yes"), Fails("no", "mend it")).CanRecord());
  EXPECT_FALSE(ReportOf(Fails("no", "mend it"), Works("yes")).CanRecord());
}

TEST(DoctorReport, TextAlignsColumnsAndGivesAdvice) {
  EXPECT_THAT(FormatText(ReportOf(Works("tried"), Fails("a disk\nof glass", "mend it")), Terminal()),
              HasSubstr("  bpf           works    tried\n"
                        "\n"
                        "To see more\n"
                        "  state_folder  doesn't  a disk\n"
                        "                         of glass\n"
                        "  → for state_folder: mend it\n"));
}

TEST(DoctorReport, NarrowTerminalsBreakLinesInTheirColumn) {
  const Report report =
      ReportOf(Works("tried a very long way round"), Fails("no", "mend it with glue and patience, soon"));
  EXPECT_THAT(FormatText(report, Terminal{.width = 40}),
              HasSubstr("  bpf           works    tried a very long\n"
                        "                         way round\n"
                        "\n"
                        "To see more\n"
                        "  state_folder  doesn't  no\n"
                        "  → for state_folder: mend it with glue\n"
                        "    and patience, soon\n"));
}

TEST(DoctorReport, TheSameAdviceIsGivenOnce) {
  constexpr Capability kOther{"btf", Use::kRecord, nullptr};
  const Report report{.host = "node7",
                      .kernel = "6.1",
                      .examined = {{&kNeeded, Fails("no", "be root")}, {&kOther, Fails("no", "be root")}}};
  EXPECT_THAT(FormatText(report, Terminal()), HasSubstr("  → for bpf, btf: be root\n"));
}

TEST(DoctorReport, TheLastLineNamesWhatRecordingLacks) {
  const std::string text = FormatText(ReportOf(Fails("no", "mend it"), Works("yes")), Terminal());
  EXPECT_THAT(text, testing::EndsWith("`gpusonde record` does not work here; it needs bpf.\n"));
}

TEST(DoctorReport, ColoursOnlyWhenAskedFor) {
  const Report report = ReportOf(Works("yes"), Works("yes"));
  EXPECT_THAT(FormatText(report, Terminal{.colour = true}), HasSubstr("\x1b["));
  EXPECT_THAT(FormatText(report, Terminal()), Not(HasSubstr("\x1b[")));
}

TEST(DoctorReport, JsonAcceptsLoaderMessagesInAnyEncoding) {
  const auto json =
      nlohmann::json::parse(FormatJson(ReportOf(Fails("bad \xff byte", "mend it"), Works("yes"))));
  EXPECT_EQ(json["can_record"], false);
  EXPECT_EQ(json["capabilities"][0]["why"], "bad \xef\xbf\xbd byte");
}

}  // namespace
}  // namespace gpusonde::doctor
