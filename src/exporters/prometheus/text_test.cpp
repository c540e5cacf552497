// SPDX-License-Identifier: Apache-2.0
#include "exporters/prometheus/text.h"

#include <gtest/gtest.h>

#include <limits>

namespace gpusonde::exporters::prometheus {
namespace {

constexpr Family kBytes{"bytes_total", Type::kCounter, "bytes \"read\" from C:\\"};
constexpr Family kOddCounter{"ODD_COUNTER", Type::kCounter, "a counter without the suffix"};
constexpr Family kHeat{"heat", Type::kGauge, "heat"};

TEST(TextWriter, AFamilyHasAHeadAndItsSeries) {
  TextWriter writer(Format::kText);
  writer.Begin(kBytes);
  const Label host{"host", "a"};
  writer.Write({&host, 1}, {{"pid", "7"}}, int64_t{1} << 62);
  writer.Write({}, {}, 0.25);
  EXPECT_EQ(writer.Finish(),
            "# HELP bytes_total bytes \"read\" from C:\\\\.\n"
            "# TYPE bytes_total counter\n"
            "bytes_total{host=\"a\",pid=\"7\"} 4611686018427387904\n"
            "bytes_total 0.25\n");
}

TEST(TextWriter, OpenMetricsNamesCountersWithoutTheirSuffixAndHasAnEnd) {
  TextWriter writer(Format::kOpenMetrics);
  writer.Begin(kBytes);
  writer.Write({}, {}, int64_t{1});
  writer.Begin(kOddCounter);
  writer.Write({}, {}, int64_t{2});
  EXPECT_EQ(writer.Finish(),
            "# HELP bytes bytes \\\"read\\\" from C:\\\\.\n"
            "# TYPE bytes counter\n"
            "bytes_total 1\n"
            "# HELP ODD_COUNTER a counter without the suffix.\n"
            "# TYPE ODD_COUNTER unknown\n"
            "ODD_COUNTER 2\n"
            "# EOF\n");
}

TEST(TextWriter, AFamilyWithoutSeriesLeavesNoTrace) {
  TextWriter writer(Format::kText);
  writer.Begin(kBytes);
  writer.Begin(kHeat);
  writer.Write({}, {}, int64_t{-3});
  EXPECT_EQ(writer.Finish(), "# HELP heat heat.\n# TYPE heat gauge\nheat -3\n");
}

TEST(TextWriter, HostileLabelValuesStayInTheirQuotes) {
  TextWriter writer(Format::kText);
  writer.Begin(kHeat);
  writer.Write({}, {{"command", "a\"} 1\nevil_total{x=\"\\\xFF\x80"}}, int64_t{1});
  EXPECT_EQ(writer.Finish(),
            "# HELP heat heat.\n# TYPE heat gauge\n"
            "heat{command=\"a\\\"} 1\\nevil_total{x=\\\"\\\\\uFFFD\uFFFD\"} 1\n");
}

TEST(TextWriter, NumbersThatAreNoneAreWrittenAsPrometheusReadsThem) {
  TextWriter writer(Format::kText);
  writer.Begin(kHeat);
  for (const double value :
       {std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity(),
        std::numeric_limits<double>::quiet_NaN(), 1e300})
    writer.Write({}, {}, value);
  EXPECT_EQ(writer.Finish(),
            "# HELP heat heat.\n# TYPE heat gauge\nheat +Inf\nheat -Inf\nheat NaN\nheat 1e+300\n");
}

TEST(FormatFor, OpenMetricsIsForWhoAsksForIt) {
  EXPECT_EQ(FormatFor(""), Format::kText);
  EXPECT_EQ(FormatFor("text/html,*/*;q=0.8"), Format::kText);
  EXPECT_EQ(FormatFor("application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"),
            Format::kOpenMetrics);
}

}  // namespace
}  // namespace gpusonde::exporters::prometheus
