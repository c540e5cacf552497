// SPDX-License-Identifier: Apache-2.0
#include "store/queries/print_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "store/recordings/recording.h"

namespace gpusonde::store {
namespace {

std::string Print(RowFormat format, const std::string& sql, size_t width = 0) {
  auto store = CreateInMemory().value();
  auto rows = store->Query(sql);
  if (!rows.has_value()) return rows.error().message;
  char* text = nullptr;
  size_t size = 0;
  std::FILE* file = ::open_memstream(&text, &size);
  const Result<Printed> done = PrintRows(**rows, format, file, width);
  std::fclose(file);
  std::string printed(text, size);
  std::free(text);
  if (!done.has_value()) return done.error().message;
  EXPECT_EQ(done->cut, printed.contains("…"));
  return printed;
}

TEST(PrintRows, TextIsAlignedWithNumbersToTheRight) {
  EXPECT_EQ(Print(RowFormat::kText, "VALUES ('a', 1, NULL), ('länger', 1000, 2.5)"),
            "col0    col1  col2\n"
            "a          1  NULL\n"
            "länger  1000   2.5\n");
}

TEST(PrintRows, TheWidestTextIsCutToFitATerminal) {
  constexpr const char* kSql =
      "VALUES ('a kernel with a very long name', 'short', 12345678901), ('b', 'a bit longer', 1)";
  EXPECT_EQ(Print(RowFormat::kText, kSql, 40),
            "col0           col1                 col2\n"
            "a kernel wit…  short         12345678901\n"
            "b              a bit longer            1\n");
  // Numbers are never cut, nor text to what tells nothing.
  EXPECT_EQ(Print(RowFormat::kText, kSql, 10),
            "col0      col1             col2\n"
            "a kerne…  short     12345678901\n"
            "b         a bit l…            1\n");
}

TEST(PrintRows, TextOfOthersDoesNotSteerTheTerminal) {
  EXPECT_EQ(Print(RowFormat::kText, "SELECT 'a' || chr(27) || '[2J' || chr(10) || chr(155) AS name"),
            "name\na\\x1b[2J\\x0a\\x9b\n");
}

TEST(PrintRows, CsvAndJsonOfOthersDoNotEither) {
  constexpr const char* kSql = "SELECT 'a' || chr(27) || '[2J' || chr(10) || chr(155) || chr(127) AS name";
  EXPECT_EQ(Print(RowFormat::kCsv, kSql), "name\r\n\"a\\x1b[2J\n\\x9b\\x7f\"\r\n");
  EXPECT_EQ(Print(RowFormat::kJson, kSql), "[\n{\"name\": \"a\\u001b[2J\\n\\u009b\\u007f\"}\n]\n");
}

TEST(PrintRows, JsonIsAnArrayOfObjectsWithTypes) {
  EXPECT_EQ(Print(RowFormat::kJson,
                  "SELECT 9007199254740993 AS big, 'say \"hi\"' AS text, NULL AS text "
                  "UNION ALL SELECT 2, 'x', NULL ORDER BY big DESC"),
            "[\n{\"big\": 9007199254740993, \"text\": \"say \\\"hi\\\"\", \"text_2\": null},\n"
            "{\"big\": 2, \"text\": \"x\", \"text_2\": null}\n]\n");
  EXPECT_EQ(Print(RowFormat::kJson, "SELECT 1 WHERE false"), "[]\n");
}

TEST(PrintRows, CsvIsThatOfTheStandard) {
  EXPECT_EQ(Print(RowFormat::kCsv,
                  "SELECT 'a,b' AS \"x,y\", 'say \"hi\"' AS q, '' AS empty, NULL AS none, 1.5 AS n"),
            "\"x,y\",q,empty,none,n\r\n\"a,b\",\"say \"\"hi\"\"\",\"\",,1.5\r\n");
}

TEST(PrintRows, ManyRowsAreAllThere) {
  const std::string text = Print(RowFormat::kText, "SELECT i FROM range(5000) t(i)");
  EXPECT_EQ(std::ranges::count(text, '\n'), 5001);
  EXPECT_THAT(text, testing::EndsWith("4999\n"));
}

TEST(PrintRows, AFullDiskIsAnError) {
  auto store = CreateInMemory().value();
  auto rows = store->Query("SELECT i FROM range(100000) t(i)").value();
  std::FILE* full = std::fopen("/dev/full", "w");
  ASSERT_NE(full, nullptr);
  EXPECT_EQ(PrintRows(*rows, RowFormat::kCsv, full).error().code, ErrorCode::kOutOfSpace);
  std::fclose(full);
}

}  // namespace
}  // namespace gpusonde::store
