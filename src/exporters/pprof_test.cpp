// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pprof.pb.h>

#include <algorithm>

#include "base/utf8.h"
#include "exporters/exporter.h"
#include "exporters/sample_profile.h"
#include "exporters/testing/gunzip.h"

// Google's own reader checks the same files in tests/e2e/pprof_test.py.
namespace gpusonde::exporters {
namespace {

class Pprof : public testing::Test {
 protected:
  static pprof::Profile Decoded(const model::Profile& profile) {
    pprof::Profile decoded;
    EXPECT_TRUE(decoded.ParseFromString(Gunzip(kPprof.render(profile, {}).value())));
    return decoded;
  }

  std::string Text(int64_t index) const { return profile_.string_table(static_cast<int>(index)); }
  std::string Type(const pprof::ValueType& type) const { return Text(type.type()) + "/" + Text(type.unit()); }
  const pprof::Location& LocationAt(uint64_t id) const { return profile_.location(static_cast<int>(id) - 1); }
  const pprof::Function& FunctionAt(uint64_t id) const { return profile_.function(static_cast<int>(id) - 1); }
  const pprof::Mapping& MappingAt(uint64_t id) const { return profile_.mapping(static_cast<int>(id) - 1); }

  // The function names of a sample, leaf first.
  std::vector<std::string> Names(const pprof::Sample& sample) const {
    std::vector<std::string> names;
    for (const uint64_t id : sample.location_id())
      for (const pprof::Line& line : LocationAt(id).line())
        names.push_back(Text(FunctionAt(line.function_id()).name()));
    return names;
  }

  pprof::Profile profile_ = Decoded(SampleProfile());
};

TEST_F(Pprof, HeaderHasTheTypesAndTheTime) {
  ASSERT_EQ(profile_.sample_type_size(), 2);
  EXPECT_EQ(Type(profile_.sample_type(0)), "samples/count");
  EXPECT_EQ(Type(profile_.sample_type(1)), "cpu/nanoseconds");
  EXPECT_EQ(Type(profile_.period_type()), "cpu/nanoseconds");
  EXPECT_EQ(profile_.period(), 10'000'000);
  EXPECT_EQ(Text(profile_.default_sample_type()), "cpu");
  EXPECT_EQ(profile_.time_nanos(), 1'763'687'000'000'000'000);
  EXPECT_EQ(profile_.duration_nanos(), 2'000'000'000);
  EXPECT_EQ(Text(0), "");
}

TEST_F(Pprof, StacksAreLeafFirstWithInlinedFunctionsInsideTheirLocation) {
  const pprof::Sample& sample = profile_.sample(0);
  EXPECT_EQ(sample.location_id_size(), 3);
  EXPECT_THAT(Names(sample), testing::ElementsAre("inflate", "copy_bytes", "load_batch(int)", "main"));
  EXPECT_THAT(sample.value(), testing::ElementsAre(20, 200'000'000));
  const pprof::Location& location = LocationAt(sample.location_id(1));
  EXPECT_EQ(location.line(0).line(), 41);
  EXPECT_EQ(Text(FunctionAt(location.line(1).function_id()).system_name()), "_Z10load_batchi");
}

TEST_F(Pprof, EverySampleHasItsProcessAndThread) {
  const auto& labels = profile_.sample(0).label();
  ASSERT_EQ(labels.size(), 4);
  EXPECT_EQ(Text(labels[0].key()) + "=" + Text(labels[0].str()), "process=train");
  EXPECT_EQ(Text(labels[1].key()) + "=" + std::to_string(labels[1].num()), "pid=411");
  EXPECT_EQ(Text(labels[2].key()) + "=" + Text(labels[2].str()), "thread=loader");
  EXPECT_EQ(Text(labels[3].key()) + "=" + std::to_string(labels[3].num()), "tid=412");
}

TEST_F(Pprof, AMappingIsAFileFromItsBeginningToItsLastLocation) {
  const pprof::Mapping& mapping = MappingAt(LocationAt(profile_.sample(0).location_id(2)).mapping_id());
  EXPECT_EQ(Text(mapping.filename()), "/opt/train");
  EXPECT_EQ(Text(mapping.build_id()), "ab12cd34");
  EXPECT_EQ(mapping.memory_start(), 0u);
  EXPECT_EQ(mapping.memory_limit(), 0x1091u);
  EXPECT_TRUE(mapping.has_functions() && mapping.has_filenames() && mapping.has_line_numbers());
  EXPECT_TRUE(mapping.has_inline_frames());
}

TEST_F(Pprof, TheProgramItselfIsTheFirstMapping) {
  model::Profile profile = SampleProfile();
  std::ranges::reverse(profile.binaries);
  for (model::Profile::Location& location : profile.locations)
    if (location.binary >= 0) location.binary = 1 - location.binary;
  profile_ = Decoded(profile);
  EXPECT_EQ(Text(profile_.mapping(0).filename()), "/opt/train");
  const uint64_t main_mapping = LocationAt(profile_.sample(0).location_id(2)).mapping_id();
  EXPECT_EQ(profile_.mapping(0).id(), main_mapping);
}

TEST_F(Pprof, KernelCodeHasItsMappingAndGeneratedCodeNone) {
  const pprof::Location& kernel = LocationAt(profile_.sample(1).location_id(0));
  EXPECT_EQ(Text(MappingAt(kernel.mapping_id()).filename()), "[kernel.kallsyms]");
  const pprof::Location& generated = LocationAt(profile_.sample(3).location_id(0));
  EXPECT_EQ(generated.mapping_id(), 0u);
  EXPECT_EQ(generated.address(), 0x7F0000001000u);
}

TEST_F(Pprof, AnAddressWithoutASymbolHasNoFunction) {
  const pprof::Location& location = LocationAt(profile_.sample(2).location_id(0));
  EXPECT_EQ(location.line_size(), 0);
  EXPECT_EQ(location.address(), 0x9999u);
  EXPECT_EQ(Text(MappingAt(location.mapping_id()).filename()), "/usr/lib/libz.so.1");
}

TEST_F(Pprof, EveryTextIsUtf8AndStoredOnce) {
  std::vector<std::string> texts(profile_.string_table().begin(), profile_.string_table().end());
  for (const std::string& text : texts) EXPECT_TRUE(IsUtf8(text));
  std::ranges::sort(texts);
  EXPECT_EQ(std::ranges::adjacent_find(texts), texts.end());
}

TEST_F(Pprof, AnUnknownSamplingFrequencyGivesNoPeriod) {
  model::Profile mixed = SampleProfile();
  mixed.sampling_hz = 0;
  EXPECT_EQ(Decoded(mixed).period(), 0);
}

}  // namespace
}  // namespace gpusonde::exporters
