// SPDX-License-Identifier: Apache-2.0
#include "analyze/name_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "analyze/archive.h"

namespace gpusonde::analyze {
namespace {

std::vector<std::string> ManyNames() {
  std::vector<std::string> names;
  for (int i = 0; i < 170'000; ++i) names.push_back("kernel " + std::to_string(i));
  return names;
}

std::set<std::string> KeptOf(const NameTable& table) {
  std::set<std::string> kept;
  for (uint32_t id = 0; id < table.size(); ++id)
    if (table.Canonical(id) == id) kept.emplace(table[id]);
  return kept;
}

TEST(NameTable, KeepsTheSameNamesInAnyOrderAndDivision) {
  std::vector<std::string> names = ManyNames();
  NameTable whole;
  for (const std::string& name : names) whole.Add(name);
  whole.Finish();
  EXPECT_EQ(KeptOf(whole).size(), NameTable::kMaxNames + 1);
  EXPECT_TRUE(KeptOf(whole).contains(std::string(NameTable::kOther)));

  std::shuffle(names.begin(), names.end(), std::mt19937(1));
  NameTable parts[2];
  for (size_t i = 0; i < names.size(); ++i) parts[i % 3 == 0 ? 0 : 1].Add(names[i]);
  const std::vector<uint32_t> ids = parts[0].AddAll(parts[1]);
  parts[0].Finish();
  EXPECT_EQ(KeptOf(parts[0]), KeptOf(whole));
  // The numbers of the other mean the same names, or the one for all others.
  for (uint32_t id = 0; id < parts[1].size(); ++id) {
    const std::string_view here = parts[0][parts[0].Canonical(ids[id])];
    EXPECT_TRUE(here == NameTable::kOther || here == parts[1][parts[1].Canonical(id)]);
  }
}

TEST(NameTable, GivesFewNumbersToManyNames) {
  NameTable table;
  for (const std::string& name : ManyNames()) table.Add(name);
  EXPECT_LT(table.size(), 140'000u);
}

TEST(NameTable, ArchivesDroppedNames) {
  NameTable table;
  for (const std::string& name : ManyNames()) table.Add(name);
  ArchiveWriter writer;
  table.Transfer(writer);
  const std::string bytes = writer.Take();
  ArchiveReader reader(bytes);
  NameTable read;
  read.Transfer(reader);
  ASSERT_TRUE(reader.ok());
  EXPECT_EQ(KeptOf(read), KeptOf(table));
  EXPECT_EQ(read.size(), table.size());
  // Half of a table contradicts itself: it has no name for all others.
  NameTable small;
  small.Add("a");
  ArchiveWriter bad;
  std::vector<std::string> names = {"", "b"};
  std::vector<uint32_t> dropped = {0};
  bad(names);
  bad(dropped);
  bad(uint64_t{1});
  const std::string bad_bytes = bad.Take();
  ArchiveReader bad_reader(bad_bytes);
  small.Transfer(bad_reader);
  EXPECT_FALSE(bad_reader.ok());
}

}  // namespace
}  // namespace gpusonde::analyze
