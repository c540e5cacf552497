// SPDX-License-Identifier: Apache-2.0
#include "flight_recorder/value.h"

#include <gmock/gmock.h>

#include <string>

namespace gpusonde::flight_recorder {
namespace {

using testing::HasSubstr;
using namespace std::string_literals;  // bytes of 0 within

// As Python writes them: pickle.dumps({"a": [1, -2, 70000, 2**40, -2**40], "b": ("x", 1.5, True, None)}, 2).
TEST(PickleTest, ReadsPlainData) {
  const std::string bytes =
      "\x80\x02}q\x00(X\x01\x00\x00\x00"
      "aq\x01]q\x02("
      "K\x01J\xfe\xff\xff\xffJp\x11\x01\x00\x8a\x06\x00\x00\x00\x00\x00\x01\x8a\x06\x00\x00\x00\x00\x00\xff"
      "eX\x01\x00\x00\x00"
      "bq\x03(X\x01\x00\x00\x00xq\x04G?\xf8\x00\x00\x00\x00\x00\x00\x88Ntq\x05u."s;
  const auto value = ReadPickle(bytes);
  ASSERT_TRUE(value.has_value()) << value.error().message;
  const Value* list = value->Find("a");
  ASSERT_TRUE(list != nullptr && list->AsList() != nullptr);
  std::vector<int64_t> numbers;
  for (const Value& item : list->AsList()->items) numbers.push_back(item.Integer().value());
  EXPECT_EQ(numbers, (std::vector<int64_t>{1, -2, 70000, int64_t{1} << 40, -(int64_t{1} << 40)}));
  const std::vector<Value>& tuple = value->Find("b")->AsList()->items;
  ASSERT_EQ(tuple.size(), 4u);
  EXPECT_EQ(*tuple[0].Text(), "x");
  EXPECT_EQ(tuple[1].Number(), 1.5);
  EXPECT_EQ(tuple[2].Boolean(), true);
  EXPECT_FALSE(tuple[3].Integer() || tuple[3].Boolean() || tuple[3].Text() || tuple[3].AsList());
}

// PyTorch's own pickler refers to what it has written by BINGET: the same frame is in many entries.
TEST(PickleTest, SharesWhatIsReferredTo) {
  const auto value = ReadPickle(
      "\x80\x02](}q\x00h\x00h\x00"
      "e."s);
  ASSERT_TRUE(value.has_value()) << value.error().message;
  const std::vector<Value>& items = value->AsList()->items;
  ASSERT_EQ(items.size(), 3u);
  EXPECT_EQ(items[0].AsDict(), items[2].AsDict());
}

// c os\nsystem\n (S'true' tR. — what makes pickles dangerous.
TEST(PickleTest, MakesNoObjectsAndCallsNothing) {
  const auto value = ReadPickle(
      "\x80\x02"
      "cos\nsystem\n(X\x04\x00\x00\x00truetR."s);
  ASSERT_FALSE(value.has_value());
  EXPECT_THAT(value.error().message, HasSubstr("opcode 0x63 is not of plain data"));
  EXPECT_THAT(value.error().message, HasSubstr("byte 2"));
}

TEST(PickleTest, EveryCutIsAnError) {
  const std::string whole =
      "\x80\x02}q\x00X\x01\x00\x00\x00"
      "aq\x01]q\x02(K\x01K\x02"
      "es."s;
  ASSERT_TRUE(ReadPickle(whole).has_value());
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(ReadPickle(std::string_view(whole).substr(0, size)).has_value()) << size;
}

TEST(PickleTest, RefusesWhatWouldTakeMuchMemory) {
  // A list within a list within a list, 3 bytes a level.
  std::string nested = "\x80\x02"s;
  for (int i = 0; i < 100'000; ++i) nested += "]";
  for (int i = 1; i < 100'000; ++i) nested += "a";
  const auto deep = ReadPickle(nested + ".");
  ASSERT_FALSE(deep.has_value());
  EXPECT_EQ(deep.error().code, ErrorCode::kUnsupported);
  EXPECT_FALSE(ReadPickle("\x80\x02" + std::string(10'000, '(') + "N.").has_value());
  EXPECT_FALSE(ReadPickle("\x80\x02](" + std::string(kMaxValues + 1, 'N') + "e.").has_value());
  EXPECT_FALSE(ReadPickle("\x80\x02X\xff\xff\xff\xffx."s).has_value()) << "a text longer than the file";
}

// Each list is put into the one before when that is within another one already, so that none looks deep; a
// chain as long as the file would take a stack as long to free.
TEST(PickleTest, ContainersThatGrowWithinOthersAreErrors) {
  const auto get = [](uint32_t id) {
    std::string opcode = "j";
    for (int shift = 0; shift < 32; shift += 8) opcode += static_cast<char>(id >> shift & 0xFF);
    return opcode;
  };
  constexpr uint32_t kLists = 200'000;
  std::string chain = "\x80\x02("s;
  for (uint32_t i = 0; i < kLists; ++i) chain += "]\x94"s;
  chain += "t(";
  for (uint32_t i = 0; i + 1 < kLists; ++i) chain += get(i) + get(i + 1) + "a";
  chain += "t(";
  for (uint32_t i = kLists; i-- > 0;) chain += get(i);
  EXPECT_FALSE(ReadPickle(chain + "t\x87.").has_value());
  EXPECT_FALSE(ReadPickle("\x80\x02]\x94h\x00"s + "a.").has_value()) << "a list in itself";
  EXPECT_FALSE(ReadPickle("\x80\x02}\x94X\x01\x00\x00\x00"s + "kh\x00s."s).has_value());
}

TEST(PickleTest, StrayOpcodesAreErrors) {
  for (const std::string& bytes : {"\x80\x02."s, "\x80\x02NN."s, "\x80\x02t."s, "\x80\x02(N."s,
                                   "\x80\x02"
                                   "Na."s,
                                   "\x80\x02]u."s, "\x80\x02}(Ku."s, "\x80\x02h\x05."s, "\x80\x02q\x00."s,
                                   "\x80\x09N."s, "\x80\x02}(K\x01K\x02u."s, "\x80\x02(\x85."s, ""s})
    EXPECT_FALSE(ReadPickle(bytes).has_value()) << testing::PrintToString(bytes);
}

TEST(JsonTest, MakesTheSameValues) {
  const auto value = ReadJson(R"({"a": [1, -2, 1099511627776], "b": ["x", 1.5, true, null]})");
  ASSERT_TRUE(value.has_value()) << value.error().message;
  EXPECT_EQ(value->Find("a")->AsList()->items[2].Integer(), int64_t{1} << 40);
  EXPECT_EQ(*value->Find("b")->AsList()->items[0].Text(), "x");
  EXPECT_EQ(value->Find("b")->AsList()->items[2].Boolean(), true);
}

TEST(JsonTest, CutsAndDepthAreErrors) {
  const std::string whole = R"({"a": [1, {"b": "c"}]})";
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(ReadJson(std::string_view(whole).substr(0, size)).has_value()) << size;
  EXPECT_FALSE(ReadJson(std::string(1000, '[') + std::string(1000, ']')).has_value());
}

}  // namespace
}  // namespace gpusonde::flight_recorder
