// SPDX-License-Identifier: Apache-2.0
#include "exporters/otlp/profiles.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <otlp.pb.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "base/utf8.h"
#include "exporters/otlp/response.h"
#include "exporters/sample_profile.h"
#include "exporters/testing/gunzip.h"

// An independent decoder reads the same files in tests/e2e/otlp.
namespace gpusonde::exporters {
namespace {

using testing::ElementsAre;
using testing::UnorderedElementsAre;

const std::string kContainerId(64, 'c');

class OtlpProfiles : public testing::Test {
 protected:
  static otlp::ProfilesData Decoded(const model::Profile& profile, const Options& options = {}) {
    otlp::ProfilesData decoded;
    EXPECT_TRUE(decoded.ParseFromString(Gunzip(kOtlp.render(profile, options).value())));
    return decoded;
  }

  const otlp::ProfilesDictionary& tables() const { return data_.dictionary(); }
  std::string Text(int32_t index) const { return tables().string_table(index); }
  std::string Type(const otlp::ValueType& type) const {
    return Text(type.type_strindex()) + "/" + Text(type.unit_strindex());
  }
  const otlp::Profile& ProfileAt(int resource, int profile) const {
    return data_.resource_profiles(resource).scope_profiles(0).profiles(profile);
  }
  // "key=value" of each.
  template <class Indices>
  std::vector<std::string> Attributes(const Indices& indices) const {
    std::vector<std::string> all;
    for (const int32_t index : indices) {
      const otlp::KeyValueAndUnit& attribute = tables().attribute_table(index);
      const otlp::AnyValue& value = attribute.value();
      all.push_back(Text(attribute.key_strindex()) + "=" +
                    (value.has_string_value() ? value.string_value()
                     : value.has_int_value()  ? std::to_string(value.int_value())
                                              : std::to_string(value.bool_value())));
    }
    return all;
  }
  std::vector<std::string> Names(const otlp::Sample& sample) const {
    std::vector<std::string> names;
    for (const int32_t location : tables().stack_table(sample.stack_index()).location_indices())
      for (const otlp::Line& line : tables().location_table(location).lines())
        names.push_back(Text(tables().function_table(line.function_index()).name_strindex()));
    return names;
  }
  static std::vector<std::string> ResourceOf(const otlp::ResourceProfiles& resource) {
    std::vector<std::string> all;
    for (const otlp::KeyValue& attribute : resource.resource().attributes())
      all.push_back(attribute.key() + "=" + attribute.value().string_value());
    return all;
  }

  otlp::ProfilesData data_ = Decoded(SampleProfile());
};

TEST_F(OtlpProfiles, EveryTableBeginsWithItsEmptyEntry) {
  EXPECT_EQ(tables().mapping_table(0).ByteSizeLong(), 0u);
  EXPECT_EQ(tables().location_table(0).ByteSizeLong(), 0u);
  EXPECT_EQ(tables().function_table(0).ByteSizeLong(), 0u);
  EXPECT_EQ(tables().link_table(0).ByteSizeLong(), 0u);
  EXPECT_EQ(tables().attribute_table(0).ByteSizeLong(), 0u);
  EXPECT_EQ(tables().stack_table(0).ByteSizeLong(), 0u);
  EXPECT_EQ(Text(0), "");
}

TEST_F(OtlpProfiles, AResourceHasTheTimeAndTheCountOfItsSamples) {
  ASSERT_EQ(data_.resource_profiles_size(), 1);
  ASSERT_EQ(data_.resource_profiles(0).scope_profiles(0).profiles_size(), 2);
  const otlp::Profile& times = ProfileAt(0, 0);
  const otlp::Profile& counts = ProfileAt(0, 1);
  EXPECT_EQ(Type(times.sample_type()), "cpu/nanoseconds");
  EXPECT_EQ(Type(counts.sample_type()), "samples/count");
  for (const otlp::Profile* profile : {&times, &counts}) {
    EXPECT_EQ(Type(profile->period_type()), "cpu/nanoseconds");
    EXPECT_EQ(profile->period(), 10'000'000);
    EXPECT_EQ(profile->time_unix_nano(), 1'763'687'000'000'000'000u);
    EXPECT_EQ(profile->duration_nano(), 2'000'000'000u);
    EXPECT_EQ(profile->profile_id().size(), 16u);
  }
  EXPECT_NE(times.profile_id(), counts.profile_id());
  ASSERT_EQ(times.samples_size(), counts.samples_size());
  EXPECT_THAT(times.samples(0).values(), ElementsAre(200'000'000));
  EXPECT_THAT(counts.samples(0).values(), ElementsAre(20));
  EXPECT_EQ(times.samples(0).stack_index(), counts.samples(0).stack_index());
}

TEST_F(OtlpProfiles, StacksAreLeafFirstWithInlinedFunctionsInsideTheirLocation) {
  EXPECT_THAT(Names(ProfileAt(0, 0).samples(0)),
              ElementsAre("inflate", "copy_bytes", "load_batch(int)", "main"));
}

TEST_F(OtlpProfiles, EverySampleHasItsProcessAndThread) {
  EXPECT_THAT(Attributes(ProfileAt(0, 0).samples(0).attribute_indices()),
              UnorderedElementsAre("process.pid=411", "process.executable.name=train", "thread.id=412",
                                   "thread.name=loader"));
}

TEST_F(OtlpProfiles, FramesHaveTheTypesOfTheConventions) {
  std::multiset<std::string> types;
  for (const otlp::Location& location : tables().location_table())
    for (const std::string& attribute : Attributes(location.attribute_indices())) types.insert(attribute);
  EXPECT_THAT(types, UnorderedElementsAre("profile.frame.type=native", "profile.frame.type=native",
                                          "profile.frame.type=native", "profile.frame.type=native",
                                          "profile.frame.type=native", "profile.frame.type=kernel",
                                          "profile.frame.type=jit"));
}

TEST_F(OtlpProfiles, AMappingIsAFileFromItsBeginningToItsLastLocation) {
  const otlp::Stack& stack = tables().stack_table(ProfileAt(0, 0).samples(0).stack_index());
  const otlp::Location& main = tables().location_table(stack.location_indices(2));
  const otlp::Mapping& mapping = tables().mapping_table(main.mapping_index());
  EXPECT_EQ(Text(mapping.filename_strindex()), "/opt/train");
  EXPECT_THAT(Attributes(mapping.attribute_indices()),
              ElementsAre("process.executable.build_id.gnu=ab12cd34"));
  EXPECT_EQ(mapping.memory_start(), 0u);
  EXPECT_EQ(mapping.memory_limit(), 0x1091u);
  EXPECT_EQ(main.address(), 0x1010u);
}

TEST_F(OtlpProfiles, EachContainerIsAResourceAndTheOneWithMostTimeIsFirst) {
  Options options;
  options.processes[{1, 1}] = {.host = "node-1",
                               .executable = "/opt/bin/train.bin",
                               .container = kContainerId,
                               .container_name = "main",
                               .pod = "trainer-0",
                               .pod_namespace = "ml"};
  options.processes[{2, 2}] = {.host = "node-1",
                               .executable = "",
                               .container = "",
                               .container_name = "",
                               .pod = "",
                               .pod_namespace = ""};
  data_ = Decoded(SampleProfile(), options);
  ASSERT_EQ(data_.resource_profiles_size(), 2);
  EXPECT_THAT(ResourceOf(data_.resource_profiles(0)),
              ElementsAre("host.name=node-1", "container.id=" + kContainerId, "k8s.container.name=main",
                          "k8s.pod.name=trainer-0", "k8s.namespace.name=ml"));
  EXPECT_THAT(ResourceOf(data_.resource_profiles(1)), ElementsAre("host.name=node-1"));
  EXPECT_THAT(Attributes(ProfileAt(0, 0).samples(0).attribute_indices()),
              UnorderedElementsAre("process.pid=411", "process.executable.name=train.bin", "thread.id=412",
                                   "thread.name=loader", "process.executable.path=/opt/bin/train.bin"));
  int64_t total_ns = 0;
  std::set<std::string> ids;
  for (int resource = 0; resource < 2; ++resource) {
    for (const otlp::Sample& sample : ProfileAt(resource, 0).samples()) total_ns += sample.values(0);
    ids.insert(ProfileAt(resource, 0).profile_id());
  }
  EXPECT_EQ(total_ns, 600'000'000) << "no sample is lost or doubled";
  EXPECT_EQ(ids.size(), 2u);
  EXPECT_EQ(CountOtlpProfiles(SampleProfile(), options), 4);
  EXPECT_EQ(CountOtlpProfiles(SampleProfile(), {}), 2);
}

TEST_F(OtlpProfiles, GpuTimeHasItsDeviceAndStream) {
  model::Profile profile = SampleProfile();
  profile.type = model::ProfileType::kGpu;
  profile.sampling_hz = 0;
  profile.devices = {{.name = "H100", .ordinal = 3, .simulated = true}};
  profile.locations[0].kind = model::FrameKind::kGpu;
  profile.samples[0].device = 0;
  profile.samples[0].stream = 7;
  profile.samples[0].graph = true;
  data_ = Decoded(profile);
  EXPECT_EQ(Type(ProfileAt(0, 0).sample_type()), "gpu_kernel_time/nanoseconds");
  EXPECT_EQ(Type(ProfileAt(0, 1).sample_type()), "gpu_operations/count");
  EXPECT_EQ(ProfileAt(0, 0).period(), 0);
  EXPECT_THAT(Attributes(ProfileAt(0, 0).attribute_indices()),
              ElementsAre("gpusonde.cuda.device.3=H100 (simulated)"));
  EXPECT_THAT(
      Attributes(ProfileAt(0, 0).samples(0).attribute_indices()),
      testing::IsSupersetOf({"gpusonde.cuda.device=3", "gpusonde.cuda.stream=7", "gpusonde.cuda.graph=1"}));
  EXPECT_THAT(Attributes(tables().location_table(1).attribute_indices()),
              ElementsAre("profile.frame.type=cuda"));
}

TEST_F(OtlpProfiles, EveryTextIsUtf8AndTextsAndAttributesAreStoredOnce) {
  std::vector<std::string> texts(tables().string_table().begin(), tables().string_table().end());
  for (const std::string& text : texts) EXPECT_TRUE(IsUtf8(text));
  std::ranges::sort(texts);
  EXPECT_EQ(std::ranges::adjacent_find(texts), texts.end());
  std::multiset<std::string> attributes;
  for (const otlp::KeyValueAndUnit& attribute : tables().attribute_table())
    attributes.insert(attribute.SerializeAsString());
  for (const std::string& attribute : attributes) EXPECT_EQ(attributes.count(attribute), 1u);
}

OtlpRejection ReadRejection(int64_t items, const std::string& message) {
  otlp::ExportResponse response;
  response.mutable_partial_success()->set_rejected(items);
  response.mutable_partial_success()->set_error_message(message);
  return ReadOtlpResponse(response.SerializeAsString());
}

TEST(OtlpResponse, SaysWhatWasRejectedAndAnyOtherBodyRejectsNothing) {
  const OtlpRejection some = ReadRejection(3, "too old");
  EXPECT_EQ(some.items, 3);
  EXPECT_EQ(some.message, "too old");
  EXPECT_EQ(ReadRejection(-3, "too old").items, 0);
  for (const std::string body : {"", "<html>ok</html>", "{}"})
    EXPECT_EQ(ReadOtlpResponse(body).items, 0) << body;
}

TEST(OtlpResponse, RejectionsCountThoughTheirMessageIsNotUtf8) {
  const OtlpRejection some = ReadRejection(3, "too \xff");
  EXPECT_EQ(some.items, 3);
  EXPECT_EQ(some.message, "too \xff");
}

TEST_F(OtlpProfiles, AProfileWithoutSamplesHasNoResource) {
  EXPECT_EQ(Decoded(model::Profile()).resource_profiles_size(), 0);
}

}  // namespace
}  // namespace gpusonde::exporters
