// SPDX-License-Identifier: Apache-2.0
#include "symbols/jit_dump.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/testing/temp_folder.h"

namespace gpusonde::symbols {
namespace {

constexpr size_t kPlenty = size_t{64} << 20;

// Writes the file as the specification has it.
class Writer {
 public:
  explicit Writer(const std::string& path) : file_(*Open(path, O_RDWR | O_CREAT | O_TRUNC)) {}

  Writer& Header(uint32_t magic = 0x4A695444, uint32_t version = 1, uint32_t bytes = 40) {
    Add(magic).Add(version).Add(bytes).Add(uint32_t{62}).Add(uint32_t{0}).Add(uint32_t{411});
    return Add(uint64_t{0}).Add(uint64_t{0}).Flush();
  }
  Writer& Load(uint64_t address, const std::string& code, uint64_t index, const std::string& name) {
    Body(0, 40 + name.size() + 1 + code.size()).Add(uint32_t{411}).Add(uint32_t{411});
    Add(address).Add(address).Add(uint64_t{code.size()}).Add(index);
    bytes_ += name + '\0' + code;
    return Flush();
  }
  Writer& Move(uint64_t from, uint64_t to, uint64_t size, uint64_t index) {
    Body(1, 48).Add(uint32_t{411}).Add(uint32_t{411}).Add(from);
    return Add(from).Add(to).Add(size).Add(index).Flush();
  }
  struct Place {
    uint64_t address;
    int32_t line;
    std::string file;
  };
  Writer& Lines(uint64_t code, const std::vector<Place>& places) {
    size_t size = 16;
    for (const Place& place : places) size += 16 + place.file.size() + 1;
    Body(2, size).Add(code).Add(uint64_t{places.size()});
    for (const Place& place : places) {
      Add(place.address).Add(place.line).Add(int32_t{0});
      bytes_ += place.file + '\0';
    }
    return Flush();
  }
  Writer& Body(uint32_t kind, size_t bytes) {
    return Add(kind).Add(static_cast<uint32_t>(16 + bytes)).Add(uint64_t{0});
  }
  template <class Value>
  Writer& Add(Value value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  // All but the last `kept` bytes.
  Writer& Flush(size_t kept = 0) {
    const size_t count = bytes_.size() - kept;
    EXPECT_EQ(::write(file_.get(), bytes_.data(), count), static_cast<ssize_t>(count));
    bytes_.erase(0, count);
    return *this;
  }
  const Fd& file() const { return file_; }

 private:
  Fd file_;
  std::string bytes_;
};

class JitDumpTest : public testing::Test {
 protected:
  std::string NameAt(uint64_t address) {
    const auto symbol = dump_.Find(address);
    return symbol.has_value() ? std::string(symbol->name) : "-";
  }
  std::string PlaceAt(uint64_t address) {
    const auto symbol = dump_.Find(address);
    return symbol.has_value() ? std::string(symbol->file) + ":" + std::to_string(symbol->line) : "-";
  }

  TempFolder folder_;
  Writer writer_{folder_ / "jit-411.dump"};
  JitDump dump_;
};

TEST_F(JitDumpTest, FindsCodeByItsAddress) {
  writer_.Header().Load(0x1000, "0123456789abcdef", 1, "forward").Load(0x2000, "0123", 2, "backward");
  EXPECT_TRUE(dump_.Follow(writer_.file(), kPlenty));
  EXPECT_EQ(NameAt(0x1000), "forward");
  EXPECT_EQ(NameAt(0x100f), "forward");
  EXPECT_EQ(NameAt(0x1010), "-");
  EXPECT_EQ(NameAt(0xfff), "-");
  EXPECT_EQ(NameAt(0x2003), "backward");
  EXPECT_EQ(PlaceAt(0x1000), ":0");
  EXPECT_FALSE(dump_.Follow(writer_.file(), kPlenty)) << "nothing new";
}

TEST_F(JitDumpTest, ReadsOnWhereItStoppedEvenWithinARecord) {
  EXPECT_FALSE(dump_.Follow(writer_.file(), kPlenty)) << "not even a header yet";
  writer_.Header().Body(0, 40 + 2 + 4).Add(uint64_t{0}).Add(uint64_t{0x1000}).Add(uint64_t{0x1000});
  writer_.Add(uint64_t{4}).Add(uint64_t{1}).Add('f').Add('\0').Add(uint32_t{0}).Flush(1);
  EXPECT_FALSE(dump_.Follow(writer_.file(), kPlenty));
  EXPECT_EQ(NameAt(0x1000), "-");
  writer_.Flush().Load(0x2000, "0123", 2, "g");
  EXPECT_TRUE(dump_.Follow(writer_.file(), kPlenty));
  EXPECT_EQ(NameAt(0x1000) + NameAt(0x2000), "fg");
  EXPECT_FALSE(dump_.broken());
}

TEST_F(JitDumpTest, LaterCodeTakesTheRoomOfWhatWasThere) {
  writer_.Header()
      .Load(0x1000, "01234567", 1, "a")
      .Load(0x1008, "01234567", 2, "b")
      .Load(0x1004, "01234567", 3, "c");
  dump_.Follow(writer_.file(), kPlenty);
  EXPECT_EQ(NameAt(0x1000) + NameAt(0x1004) + NameAt(0x100b) + NameAt(0x100c), "-cc-");
  EXPECT_EQ(dump_.size(), 1u);
}

TEST_F(JitDumpTest, CodeMoves) {
  writer_.Header().Load(0x1000, "0123", 1, "a").Move(0x1000, 0x3000, 4, 1).Move(0x1000, 0x5000, 4, 1);
  dump_.Follow(writer_.file(), kPlenty);
  EXPECT_EQ(NameAt(0x1000) + NameAt(0x3000) + NameAt(0x5000), "-a-");
}

TEST_F(JitDumpTest, LinesBelongToTheCodeThatFollows) {
  writer_.Header().Lines(0x1000, {{0x1000, 7, "/app/a.js"}, {0x1002, 9, "\xff"}, {0x1003, 1, "/app/b.js"}});
  writer_.Load(0x1000, "0123", 1, "a").Load(0x2000, "0123", 2, "b");
  dump_.Follow(writer_.file(), kPlenty);
  EXPECT_EQ(PlaceAt(0x1001), "/app/a.js:7");
  EXPECT_EQ(PlaceAt(0x1002), "/app/a.js:9");
  EXPECT_EQ(PlaceAt(0x1003), "/app/b.js:1");
  EXPECT_EQ(PlaceAt(0x2000), ":0");
}

TEST_F(JitDumpTest, LinesOfV8StandBehindAnElfHeader) {
  writer_.Header()
      .Lines(0x1000, {{0x1040, 7, "/app/a.js"}, {0x1042, 9, "/app/a.js"}})
      .Load(0x1000, "0123", 1, "a");
  dump_.Follow(writer_.file(), kPlenty);
  EXPECT_EQ(PlaceAt(0x1000), "/app/a.js:7");
  EXPECT_EQ(PlaceAt(0x1003), "/app/a.js:9");
}

TEST_F(JitDumpTest, WhatMakesNoSenseEndsTheReadingAndKeepsWhatWasRead) {
  writer_.Header().Load(0x1000, "0123", 1, "a").Add(uint32_t{0}).Add(uint32_t{3}).Add(uint64_t{0}).Flush();
  writer_.Load(0x2000, "0123", 2, "b");
  dump_.Follow(writer_.file(), kPlenty);
  EXPECT_TRUE(dump_.broken());
  EXPECT_EQ(NameAt(0x1000) + NameAt(0x2000), "a-");
}

TEST_F(JitDumpTest, OtherFilesAreNone) {
  for (const auto& [magic, version, bytes] : {std::tuple{0x44546A4Au, 1u, 40u},
                                              {0x4A695444u, 2u, 40u},
                                              {0x4A695444u, 1u, 39u},
                                              {0x4A695444u, 1u, 0xFFFFFFFFu}}) {
    Writer writer(folder_ / "other.dump");
    writer.Header(magic, version, bytes).Load(0x1000, "0123", 1, "a");
    JitDump dump;
    EXPECT_FALSE(dump.Follow(writer.file(), kPlenty));
    EXPECT_TRUE(dump.broken());
  }
}

TEST_F(JitDumpTest, HostileRecordsChangeNothingElse) {
  writer_.Header().Load(0x1000, "0123", 1, "good");
  writer_.Body(0, 4).Add(uint32_t{0}).Flush();                                        // cut short
  writer_.Load(0xFFFFFFFFFFFFFFFE, "0123", 2, "wraps").Load(0x5000, "", 3, "empty");  // no room, no code
  writer_.Body(2, 16).Add(uint64_t{0x2000}).Add(UINT64_MAX).Flush();  // more lines than there are
  writer_.Lines(0x6000, {{0x10, 5, "/before"}, {0x6000, -5, "/negative"}, {0x6001, 5, "\x01\xCE"}});
  writer_.Load(0x6000, "0123", 4, std::string("\xCE(", 2)).Body(77, 8).Add(uint64_t{0}).Flush();
  dump_.Follow(writer_.file(), kPlenty);
  EXPECT_FALSE(dump_.broken());
  EXPECT_EQ(NameAt(0x1000), "good");
  EXPECT_EQ(NameAt(0x6001), "\xEF\xBF\xBD(");
  EXPECT_EQ(PlaceAt(0x6001), ":0");
  EXPECT_EQ(dump_.size(), 2u);
}

TEST_F(JitDumpTest, KeepsWithinItsRoomAndReadsOnWhenThereIsMore) {
  constexpr size_t kRoom = size_t{1} << 20;
  writer_.Header();
  for (uint64_t i = 1; i <= 10'000; ++i) {
    writer_.Lines(i << 8, {{i << 8, 7, "/app/a.js"}});
    writer_.Load(i << 8, "0123", i, "a name of common length");
    if (i % 8'000 == 0) dump_.Follow(writer_.file(), kRoom);
  }
  EXPECT_FALSE(dump_.Follow(writer_.file(), kRoom));
  EXPECT_TRUE(dump_.full());
  EXPECT_LE(dump_.bytes(), kRoom);
  EXPECT_GT(dump_.bytes(), kRoom / 2);
  while (dump_.Follow(writer_.file(), kPlenty)) continue;
  EXPECT_FALSE(dump_.full());
  EXPECT_EQ(dump_.size(), 10'000u);
  for (uint64_t i = 1; i <= 10'000; ++i) ASSERT_EQ(PlaceAt(i << 8), "/app/a.js:7") << i;
}

TEST_F(JitDumpTest, CodeThatWasReplacedTakesNoRoom) {
  writer_.Header();
  for (uint64_t i = 1; i <= 1000; ++i) {
    writer_.Lines(0x1000, {{0x1000, 7, "/app/a.js"}});
    writer_.Load(0x1000, "0123", i, "a name of common length");
  }
  writer_.Lines(0x2000, {{0x2000, 7, "/app/a.js"}}).Load(0x2000, "", 1001, "no code");
  writer_.Lines(0x2000, {{0x2000, 7, "/app/a.js"}}).Load(0x3000, "0123", 1002, "of another address");
  EXPECT_TRUE(dump_.Follow(writer_.file(), kPlenty));
  EXPECT_EQ(dump_.size(), 2u);
  EXPECT_LT(dump_.bytes(), 1000u);
}

TEST_F(JitDumpTest, AFileOfEmptyRecordsIsReadInSeveralLooks) {
  writer_.Header();
  for (size_t i = 0; i < 2 * JitDump::kMaxRecordsPerLook; ++i) writer_.Body(77, 0);
  writer_.Load(0x1000, "0123", 1, "last");
  EXPECT_FALSE(dump_.Follow(writer_.file(), kPlenty));
  EXPECT_FALSE(dump_.Follow(writer_.file(), kPlenty));
  EXPECT_TRUE(dump_.Follow(writer_.file(), kPlenty));
  EXPECT_EQ(NameAt(0x1000), "last");
}

}  // namespace
}  // namespace gpusonde::symbols
