// SPDX-License-Identifier: Apache-2.0
#include "exporters/exporter.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "exporters/sample_profile.h"

namespace gpusonde::exporters {
namespace {

TEST(Exporters, AreSortedByNameAndFoundByIt) {
  EXPECT_TRUE(std::ranges::is_sorted(AllExporters(), {}, &Exporter::name));
  for (const Exporter* exporter : AllExporters()) EXPECT_EQ(FindExporter(exporter->name), exporter);
  EXPECT_EQ(FindExporter("svg"), nullptr);
}

TEST(Exporters, GiveTheSameBytesForTheSameProfile) {
  for (const Exporter* exporter : AllExporters())
    EXPECT_EQ(exporter->render(SampleProfile(), {}).value(), exporter->render(SampleProfile(), {}).value())
        << exporter->name;
}

TEST(Exporters, AcceptFramesAndStacksThatAreUnknown) {
  model::Profile profile;
  profile.locations = {{.lines = {{-1, 0}}}};  // a line without its function
  profile.stacks = {{}, {-1}, {0, -1}};
  profile.threads = {{.process = {1, 1}, .pid = 1, .tid = 1, .process_name = "", .name = ""}};
  for (int32_t stack = 0; stack < 3; ++stack)
    profile.samples.push_back({.stack = stack, .thread = 0, .count = 1, .weight_ns = 1});
  for (const Exporter* exporter : AllExporters())
    EXPECT_TRUE(exporter->render(profile, {}).has_value()) << exporter->name;
}

}  // namespace
}  // namespace gpusonde::exporters
