// SPDX-License-Identifier: Apache-2.0
#include "server/query_parameters.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace gpusonde::server {
namespace {

using testing::HasSubstr;
using Pairs = std::vector<std::pair<std::string, std::string>>;

constexpr std::string_view kProcess = "00112233445566778899aabbccddeeff";

Result<model::Selection> Parse(const Pairs& pairs) {
  ASSIGN_OR_RETURN(QueryParameters parameters, QueryParameters::Create(pairs));
  ASSIGN_OR_RETURN(model::Selection selection, parameters.TakeSelection());
  TRY(parameters.Finish());
  return selection;
}

std::string MessageOf(const Pairs& pairs) {
  const auto selection = Parse(pairs);
  if (selection.has_value()) return "accepted";
  EXPECT_EQ(selection.error().code, ErrorCode::kInvalidArgument);
  return selection.error().message;
}

TEST(QueryParameters, NoParametersSelectEverything) {
  const model::Selection selection = Parse({}).value();
  EXPECT_EQ(selection.from_ns, std::numeric_limits<int64_t>::min());
  EXPECT_EQ(selection.to_ns, std::numeric_limits<int64_t>::max());
  EXPECT_TRUE(selection.processes.empty());
  EXPECT_EQ(selection.filter, "");
}

TEST(QueryParameters, ASelectionIsRead) {
  const model::Selection selection = Parse({{"filter", "mat mul"},
                                            {"tid", "412"},
                                            {"process", std::string(kProcess)},
                                            {"from_us", "1763687000000000"},
                                            {"to_us", "9007199254740991"}})
                                         .value();
  EXPECT_EQ(selection.from_ns, 1763687000000000'000);
  EXPECT_EQ(selection.to_ns, 9007199254740991'000);
  EXPECT_EQ(selection.processes, std::vector{Id128::FromHex(kProcess).value()});
  EXPECT_EQ(selection.tid, 412);
  EXPECT_EQ(selection.filter, "mat mul");
  EXPECT_FALSE(selection.while_gpu_idle);
}

TEST(QueryParameters, GpuParametersAreRead) {
  const model::Selection selection =
      Parse({{"device", std::string(kProcess)}, {"stream", "7"}, {"while_gpu_idle", "1"}}).value();
  EXPECT_EQ(selection.device, Id128::FromHex(kProcess));
  EXPECT_EQ(selection.stream, 7);
  EXPECT_TRUE(selection.while_gpu_idle);
  EXPECT_THAT(MessageOf({{"stream", "7"}}), HasSubstr("'stream' needs 'device'"));
  EXPECT_THAT(MessageOf({{"device", "0"}}), HasSubstr("32 hex digits of a device's id"));
  EXPECT_THAT(MessageOf({{"while_gpu_idle", "yes"}}),
              HasSubstr("'while_gpu_idle' takes an integer from 0 to 1"));
}

TEST(QueryParameters, ValuesOutsideTheRangeAreRefused) {
  for (const char* value :
       {"", "x", "1x", " 1", "+1", "1.5", "1e9", "-1", "9007199254740992", "99999999999999999999", "0x10"})
    EXPECT_THAT(MessageOf({{"from_us", value}}), HasSubstr("'from_us' takes an integer from 0")) << value;
  EXPECT_THAT(MessageOf({{"process", std::string(kProcess)}, {"tid", "2147483648"}}), HasSubstr("'tid'"));
}

TEST(QueryParameters, ATimeRangeMustNotBeEmpty) {
  EXPECT_THAT(MessageOf({{"from_us", "5"}, {"to_us", "5"}}), HasSubstr("'to_us' (5) must be after"));
  EXPECT_EQ(MessageOf({{"from_us", "5"}, {"to_us", "6"}}), "accepted");
}

TEST(QueryParameters, AProcessHas32HexDigits) {
  for (const char* value : {"", "411", "zz112233445566778899aabbccddeeff"})
    EXPECT_THAT(MessageOf({{"process", value}}), HasSubstr("32 hex digits")) << value;
}

TEST(QueryParameters, SeveralProcessesAreReadOnceEach) {
  const std::string first(kProcess), second = Id128{4, 11}.ToHex();
  EXPECT_EQ(Parse({{"process", first + "," + second + "," + first}}).value().processes,
            (std::vector{Id128::FromHex(first).value(), Id128{4, 11}}));
  for (const char* format : {"{0},", ",{0}", "{0},,{1}", "{0} {1}"}) {
    const std::string value = fmt::format(fmt::runtime(format), first, second);
    EXPECT_THAT(MessageOf({{"process", value}}), HasSubstr("with commas between them, not '")) << value;
  }
}

TEST(QueryParameters, TheNumberOfProcessesIsBounded) {
  std::string processes = Id128{1, 0}.ToHex();
  for (uint64_t i = 1; i < 100; ++i) processes += "," + Id128{1, i}.ToHex();
  EXPECT_EQ(Parse({{"process", processes}}).value().processes.size(), 100u);
  EXPECT_THAT(MessageOf({{"process", processes + "," + Id128{2, 0}.ToHex()}}),
              HasSubstr("at most 100 processes"));
}

TEST(QueryParameters, AThreadNeedsItsProcess) {
  EXPECT_THAT(MessageOf({{"tid", "412"}}), HasSubstr("needs 'process'"));
  EXPECT_THAT(MessageOf({{"tid", "412"}, {"process", Id128{1, 1}.ToHex() + "," + Id128{1, 2}.ToHex()}}),
              HasSubstr("with one id"));
}

TEST(QueryParameters, AFilterIsBounded) {
  EXPECT_EQ(MessageOf({{"filter", std::string(1000, 'x')}}), "accepted");
  EXPECT_THAT(MessageOf({{"filter", std::string(1001, 'x')}}), HasSubstr("at most 1000 bytes"));
}

TEST(QueryParameters, UnknownNamesAreRefusedWithTheKnownOnes) {
  EXPECT_EQ(MessageOf({{"form_us", "1"}}),
            "unknown parameter 'form_us'; this address takes from_us, to_us, process, tid, filter, device, "
            "stream, while_gpu_idle");
}

TEST(QueryParameters, ANameGivenTwiceIsRefused) {
  EXPECT_EQ(MessageOf({{"tid", "1"}, {"tid", "2"}}), "parameter 'tid' is given twice");
}

}  // namespace
}  // namespace gpusonde::server
