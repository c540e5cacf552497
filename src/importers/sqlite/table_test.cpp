// SPDX-License-Identifier: Apache-2.0
#include "importers/sqlite/table.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "base/testing/temp_folder.h"

namespace gpusonde::importers::sqlite {
namespace {

// Of 32 bits, which std::mt19937 isn't on 64-bit machines.
class Random {
 public:
  using result_type = uint32_t;
  explicit Random(uint32_t seed) : engine_(seed) {}
  static constexpr uint32_t min() { return 0; }
  static constexpr uint32_t max() { return UINT32_MAX; }
  uint32_t operator()() { return static_cast<uint32_t>(engine_()); }

 private:
  std::mt19937 engine_;
};

void Execute(const std::string& path, const std::string& sql) {
  sqlite3* database = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &database), SQLITE_OK);
  char* message = nullptr;
  EXPECT_EQ(sqlite3_exec(database, sql.c_str(), nullptr, nullptr, &message), SQLITE_OK)
      << message << ": " << sql;
  sqlite3_free(message);
  sqlite3_close(database);
}

std::string Shown(const Row& row) {
  std::string text = fmt::format("{}:", row.rowid);
  for (const Cell& cell : row.cells.first(row.cells.size() - 1)) switch (cell.type) {
      case CellType::kNull:
        text += " null";
        break;
      case CellType::kInteger:
        text += fmt::format(" {}", cell.integer);
        break;
      case CellType::kReal:
        text += fmt::format(" r{:a}", cell.real);
        break;
      case CellType::kText:
        text += fmt::format(" t{}:{}", cell.bytes.size(), cell.bytes);
        break;
      case CellType::kBlob:
        text += fmt::format(" b{}:{}", cell.bytes.size(), cell.bytes);
        break;
    }
  return text;
}

// All rows of a table, read part by part, or the first error.
Result<std::vector<std::string>> ReadAll(const Table& table, std::span<const size_t> columns) {
  std::vector<std::string> rows;
  ASSIGN_OR_RETURN(const auto reader, table.Read(columns));
  for (size_t part = 0; part < table.parts(); ++part) {
    TRY(reader->Seek(part));
    Row row;
    while (true) {
      ASSIGN_OR_RETURN(const bool more, reader->Next(row));
      if (!more) break;
      rows.push_back(Shown(row));
    }
  }
  return rows;
}

// The integers of every row, read by Next or by NextIntegers.
Result<std::vector<std::string>> ReadIntegers(const Table& table, std::span<const size_t> columns,
                                              bool at_once) {
  std::vector<std::string> rows;
  ASSIGN_OR_RETURN(const auto reader, table.Read(columns));
  for (size_t part = 0; part < table.parts(); ++part) {
    TRY(reader->Seek(part));
    while (!at_once) {
      Row row;
      ASSIGN_OR_RETURN(const bool more, reader->Next(row));
      if (!more) break;
      std::string& text = rows.emplace_back();
      for (const Cell& cell : row.cells) text += cell.is_integer() ? fmt::format("{} ", cell.integer) : "- ";
    }
    while (at_once) {
      IntegerRows next;
      ASSIGN_OR_RETURN(const bool more, reader->NextIntegers(next));
      if (!more) break;
      for (size_t row = 0; row < next.count; ++row) {
        std::string& text = rows.emplace_back();
        for (size_t i = 0; i < next.stride; ++i) {
          const int64_t value = next.values[row * next.stride + i];
          const bool is_integer = (next.integers[row] >> i & 1) != 0;
          EXPECT_TRUE(is_integer || value == 0);
          text += is_integer ? fmt::format("{} ", value) : "- ";
        }
      }
    }
  }
  return rows;
}

std::vector<size_t> SomeColumns(const Table& table, Random& random) {
  std::vector<size_t> columns;
  for (size_t i = 0; i < std::min(table.columns().size(), Table::kMaxColumns); ++i) columns.push_back(i);
  std::shuffle(columns.begin(), columns.end(), random);
  columns.resize(1 + random() % columns.size());
  return columns;
}

// Compares both ways of reading a table; returns whether its pages were decoded directly.
bool ExpectSameRows(const std::string& path, const std::string& name, Random& random) {
  const auto fast = Database::Open(path).value();
  const auto slow = Database::Open(path, Access::kLibraryOnly).value();
  const auto fast_table = fast->FindTable(name).value();
  const auto slow_table = slow->FindTable(name).value();
  EXPECT_TRUE(fast_table.has_value() && slow_table.has_value()) << path << " " << name;
  EXPECT_FALSE(slow_table->is_direct());
  const std::vector<size_t> columns = SomeColumns(*fast_table, random);
  const auto expected = ReadAll(*slow_table, columns);
  const auto rows = ReadAll(*fast_table, columns);
  EXPECT_TRUE(rows.has_value() && expected.has_value()) << path << " " << name;
  EXPECT_EQ(*rows, *expected) << path << " " << name;
  const auto integers = ReadIntegers(*slow_table, columns, false);
  EXPECT_EQ(ReadIntegers(*fast_table, columns, true).value(), *integers) << path << " " << name;
  EXPECT_EQ(ReadIntegers(*slow_table, columns, true).value(), *integers) << path << " " << name;
  return fast_table->is_direct();
}

std::string RandomValue(Random& random) {
  switch (random() % 9) {
    case 0:
      return "NULL";
    case 1:
      return fmt::format("{}", static_cast<int>(random() % 3));
    case 2:
    case 3:
      return fmt::format("{}",
                         static_cast<int64_t>((uint64_t{random()} << 32 | random())) >> (random() % 64));
    case 4:
      return fmt::format("{:.17g}", static_cast<double>(random()) * 1e-5);
    case 5:
      return fmt::format("'{}'", std::string(random() % 40, 'x'));
    case 6:
      return fmt::format("'{}'", std::string(random() % 6000, 'y'));  // overflow pages
    case 7:
      return fmt::format("zeroblob({})", random() % 300);
    default:
      return fmt::format("x'{:08x}'", random());
  }
}

TEST(Table, DirectReadingGivesTheRowsOfTheLibraryForAnySchemaAndPageSize) {
  const TempFolder folder;
  Random random(11);
  constexpr const char* kTypes[] = {"INTEGER", "TEXT", "REAL", "BLOB", "", "NUMERIC", "INT", "FLOAT"};
  int direct = 0;
  for (int round = 0; round < 40; ++round) {
    const std::string path = folder / fmt::format("{}.sqlite", round);
    const unsigned columns = 1 + random() % 20;
    std::string sql = fmt::format("PRAGMA page_size = {}; PRAGMA journal_mode = OFF; CREATE TABLE t (",
                                  512u << (random() % 8));
    const bool alias = random() % 2 == 0;
    for (unsigned i = 0; i < columns; ++i)
      sql += fmt::format("{}c{} {}", i > 0 ? ", " : "", i,
                         alias && i == 0 ? "INTEGER PRIMARY KEY" : kTypes[random() % 8]);
    sql += "); CREATE INDEX i ON t (c0); BEGIN;";
    const int rows = static_cast<int>(random() % 600);
    for (int row = 0; row < rows; ++row) {
      sql += "INSERT OR IGNORE INTO t VALUES (";
      for (unsigned i = 0; i < columns; ++i)
        sql += (i > 0 ? ", " : "") + (alias && i == 0 ? "NULL" : RandomValue(random));
      sql += ");";
    }
    if (rows > 0) sql += fmt::format("DELETE FROM t WHERE rowid % 7 = {};", random() % 7);
    sql += "COMMIT; ALTER TABLE t ADD COLUMN later INTEGER;";
    Execute(path, sql);
    direct += ExpectSameRows(path, "t", random) ? 1 : 0;
  }
  EXPECT_EQ(direct, 40);
}

TEST(Table, UnusualFilesGoThroughTheLibrary) {
  const TempFolder folder;
  Random random(12);
  int number = 0;
  for (const char* sql :
       {"CREATE TABLE t (a INTEGER PRIMARY KEY, b) WITHOUT ROWID; INSERT INTO t VALUES (1, 'x'), (2, 3);",
        "PRAGMA encoding = 'UTF-16le'; CREATE TABLE t (a, b); INSERT INTO t VALUES (1, 'x'), (2, 3);",
        "CREATE TABLE t (a, b AS (a + 1)); INSERT INTO t VALUES (1), (2);",
        "CREATE TABLE t (a, c); INSERT INTO t VALUES (1, 2); ALTER TABLE t ADD COLUMN b DEFAULT 7;"}) {
    const std::string path = folder / fmt::format("{}.sqlite", number++);
    Execute(path, sql);
    EXPECT_FALSE(ExpectSameRows(path, "t", random)) << sql;
  }
}

TEST(Table, ADescendingKeyIsAColumnOfItsOwn) {
  const TempFolder folder;
  Random random(15);
  const std::string path = folder / "descending.sqlite";
  Execute(path, "CREATE TABLE t (a INTEGER PRIMARY KEY DESC, b); INSERT INTO t VALUES (9, 'x'), (2, 3);");
  EXPECT_TRUE(ExpectSameRows(path, "t", random));
}

TEST(Table, ReadsRowsThatAreStillInTheLog) {
  const TempFolder folder;
  const std::string path = folder / "wal.sqlite";
  sqlite3* writer = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &writer), SQLITE_OK);
  sqlite3_exec(writer, "PRAGMA journal_mode = WAL; CREATE TABLE t (a); INSERT INTO t VALUES (5);", nullptr,
               nullptr, nullptr);
  {
    const auto database = Database::Open(path).value();
    const auto table = database->FindTable("t").value();
    ASSERT_TRUE(table.has_value());
    EXPECT_EQ(ReadAll(*table, std::array{size_t{0}}).value(), std::vector<std::string>{"1: 5"});
  }
  sqlite3_close(writer);
}

// A log of a writer that was killed, in a folder whose contents must stay as they are.
TEST(Table, ReadingALogLeavesNothingBesideTheTrace) {
  const TempFolder folder;
  const std::string path = folder / "wal.sqlite", killed = folder / "killed.sqlite";
  sqlite3* writer = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &writer), SQLITE_OK);
  sqlite3_exec(writer, "PRAGMA journal_mode = WAL; CREATE TABLE t (a); INSERT INTO t VALUES (5);", nullptr,
               nullptr, nullptr);
  for (const char* const suffix : {"", "-wal"}) std::filesystem::copy_file(path + suffix, killed + suffix);
  sqlite3_close(writer);
  const auto files = [&] {
    std::map<std::string, uintmax_t> sizes;
    for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
      sizes[entry.path()] = entry.file_size();
    return sizes;
  };
  const auto before = files();
  {
    const auto database = Database::Open(killed).value();
    const auto table = database->FindTable("t").value();
    ASSERT_TRUE(table.has_value());
    EXPECT_EQ(ReadAll(*table, std::array{size_t{0}}).value(), std::vector<std::string>{"1: 5"});
    EXPECT_EQ(files(), before);
  }
  EXPECT_EQ(files(), before);
  const auto limited = Database::Open(killed, Access::kFastest, 1000);
  ASSERT_FALSE(limited.has_value());
  EXPECT_EQ(limited.error().code, ErrorCode::kOutOfSpace) << limited.error().message;
}

TEST(Table, FindsEveryRowByItsRowidAndNoOther) {
  const TempFolder folder;
  const std::string path = folder / "find.sqlite";
  std::string sql = "PRAGMA page_size = 512; CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT); BEGIN;";
  for (int i = 0; i < 3000; ++i) sql += fmt::format("INSERT INTO t VALUES ({}, 'v{}');", i * 3 - 1000, i);
  Execute(path, sql + "COMMIT;");
  for (const Access access : {Access::kFastest, Access::kLibraryOnly}) {
    const auto database = Database::Open(path, access).value();
    const auto table = database->FindTable("t").value();
    const auto reader = table->Read(std::array{size_t{1}}).value();
    Row row;
    for (int i = 0; i < 3000; ++i) {
      ASSERT_TRUE(reader->Find(i * 3 - 1000, row).value());
      ASSERT_EQ(row.cells[0].bytes, fmt::format("v{}", i));
      ASSERT_FALSE(reader->Find(i * 3 - 999, row).value());
    }
    EXPECT_FALSE(reader->Find(1'000'000, row).value());
    EXPECT_FALSE(reader->Find(-1'000'000, row).value());
  }
}

TEST(Table, EveryTableOfEveryTraceReadsTheSameBothWays) {
  const std::filesystem::path traces = std::filesystem::path("..") / "shared" / "traces" / "nsys";
  if (!std::filesystem::exists(traces)) GTEST_SKIP() << "no traces in " << traces;
  Random random(13);
  int tables = 0;
  for (const auto& entry : std::filesystem::directory_iterator(traces)) {
    const auto database = Database::Open(entry.path()).value();
    const std::vector<std::string> names = database->TableNames().value();
    for (const std::string& name : names) {
      EXPECT_TRUE(ExpectSameRows(entry.path(), name, random)) << entry.path() << " " << name;
      ++tables;
    }
  }
  EXPECT_GT(tables, 100);
}

// A valid file with random bytes overwritten, or cut off: rows or an error, and never a crash or a hang.
TEST(Table, DamagedFilesGiveRowsOrAnError) {
  const TempFolder folder;
  const std::string path = folder / "whole.sqlite";
  std::string sql =
      "PRAGMA page_size = 512; CREATE TABLE t (a, b TEXT, c REAL, d INTEGER PRIMARY KEY); BEGIN;";
  for (int i = 0; i < 400; ++i)
    sql += fmt::format("INSERT INTO t VALUES ({}, '{}', {}.5, NULL);", i,
                       std::string(i % 50 == 0 ? 2000 : 20, 'z'), i);
  Execute(path, sql + "COMMIT;");
  const std::string whole = ReadFile(path).value();
  Random random(14);
  int errors = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string damaged = whole;
    if (round % 10 == 0) damaged.resize(random() % damaged.size());
    // Not in page 1, which has the schema: libsqlite3 reads that one.
    for (unsigned changes = 1 + random() % 8; changes > 0 && damaged.size() > 600; --changes)
      damaged[512 + random() % (damaged.size() - 512)] = static_cast<char>(random());
    const std::string here = folder / "damaged.sqlite";
    std::ofstream(here, std::ios::binary) << damaged;
    const auto database = Database::Open(here);
    if (!database.has_value()) {
      ++errors;
      continue;
    }
    const auto table = (*database)->FindTable("t");
    if (!table.has_value()) {
      ++errors;
      continue;
    }
    if (!table->has_value()) continue;
    const auto rows = ReadAll(**table, std::array{size_t{0}, size_t{1}, size_t{2}, size_t{3}});
    if (rows.has_value()) {
      EXPECT_LE(rows->size(), 100'000u);
    } else {
      ++errors;
    }
  }
  EXPECT_GT(errors, 100);
}

TEST(Table, AnInteriorPageThatPointsToItselfIsAnError) {
  const TempFolder folder;
  const std::string path = folder / "cycle.sqlite";
  std::string sql = "PRAGMA page_size = 512; CREATE TABLE t (a TEXT); BEGIN;";
  for (int i = 0; i < 4000; ++i) sql += fmt::format("INSERT INTO t VALUES ('{}');", std::string(30, 'q'));
  Execute(path, sql + "COMMIT;");
  std::string bytes = ReadFile(path).value();
  const size_t root = 512;  // page 2, the only table
  ASSERT_EQ(bytes[root], 0x05);
  bytes.replace(root + 8, 4, std::string("\0\0\0\2", 4));  // its rightmost child is itself
  ASSERT_TRUE(WriteFileAtomically(path, bytes).has_value());
  const auto database = Database::Open(path).value();
  const auto table = database->FindTable("t");
  const bool fails = !table.has_value() || !ReadAll(**table, std::array{size_t{0}}).has_value();
  EXPECT_TRUE(fails);
}

}  // namespace
}  // namespace gpusonde::importers::sqlite
