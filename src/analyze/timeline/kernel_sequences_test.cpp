// SPDX-License-Identifier: Apache-2.0
#include "analyze/timeline/kernel_sequences.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/name_table.h"

namespace gpusonde::analyze {
namespace {

// Work of 10 ns every 15 ns: letters are kernels, '-' is a copy.
std::vector<GpuRecord> WorkOf(std::string_view letters, uint32_t stream = 0) {
  std::vector<GpuRecord> work;
  for (const char letter : letters) {
    const auto start_ns = static_cast<int64_t>(work.size()) * 15;
    work.push_back({.start_ns = start_ns,
                    .end_ns = start_ns + 10,
                    .stream = stream,
                    .name = letter == '-' ? 0 : static_cast<uint32_t>(letter - 'A'),
                    .work = letter == '-' ? importers::GpuWork::kMemcpy : importers::GpuWork::kKernel});
  }
  return work;
}

std::vector<uint64_t> HashesOfLetters() {
  std::vector<uint64_t> hashes;
  for (char letter = 'A'; letter <= 'Z'; ++letter)
    hashes.push_back(NameTable::HashOf(std::string_view(&letter, 1)));
  return hashes;
}

RankSequences Follow(const std::vector<GpuRecord>& work) {
  const std::vector<uint64_t> hashes = HashesOfLetters();
  SequenceFollower follower(hashes);
  for (const GpuRecord& event : work) follower.Add(event);
  return std::move(follower).Finish();
}

std::string LettersOf(const KernelSequence& sequence) {
  std::string letters;
  for (const uint32_t name : sequence.names) letters += static_cast<char>('A' + name);
  return letters;
}

TEST(KernelSequences, ALoopIsOneSequence) {
  const RankSequences found = Follow(WorkOf("ABCABCABCABC"));
  ASSERT_EQ(found.sequences.size(), 1u);
  const KernelSequence& sequence = found.sequences[0];
  EXPECT_EQ(LettersOf(sequence), "ABC");
  EXPECT_EQ(sequence.count, 4);
  EXPECT_EQ(sequence.kernel_ns, 120);
  EXPECT_EQ(sequence.gap_ns, 40);
  EXPECT_EQ(sequence.first_ns, 0);
}

TEST(KernelSequences, OneKernelAgainAndAgainIsNone) {
  EXPECT_TRUE(Follow(WorkOf("AAAAAAAAAAAAAAAA")).sequences.empty());
}

TEST(KernelSequences, OtherWorkOfTheStreamEndsThem) {
  const RankSequences found = Follow(WorkOf("A-BA-BA-BA-B"));
  ASSERT_EQ(found.sequences.size(), 1u);
  EXPECT_EQ(LettersOf(found.sequences[0]), "BA");
  EXPECT_EQ(found.sequences[0].count, 3);
}

TEST(KernelSequences, OtherStreamsDont) {
  std::vector<GpuRecord> work = WorkOf("ABABAB");
  for (const GpuRecord& other : WorkOf("C-C-C-", 1)) work.push_back(other);
  std::ranges::stable_sort(work, {}, &GpuRecord::start_ns);
  const RankSequences found = Follow(work);
  ASSERT_EQ(found.sequences.size(), 1u);
  EXPECT_EQ(LettersOf(found.sequences[0]), "AB");
  EXPECT_EQ(found.sequences[0].count, 3);
}

TEST(KernelSequences, StreamsWithTheSameSequenceAddUp) {
  std::vector<GpuRecord> work = WorkOf("ABAB");
  for (const GpuRecord& other : WorkOf("ABAB", 7)) work.push_back(other);
  std::ranges::stable_sort(work, {}, &GpuRecord::start_ns);
  const RankSequences found = Follow(work);
  ASSERT_EQ(found.sequences.size(), 1u);
  EXPECT_EQ(found.sequences[0].count, 4);
  EXPECT_EQ(found.sequences[0].kernel_ns, 80);
}

TEST(KernelSequences, OccurrencesHaveNoKernelInCommon) {
  // A B A: at 0, 4 and 8; those at 2 and 6 overlap them.
  const RankSequences found = Follow(WorkOf("ABABABABABACCCCACCCCA"));
  ASSERT_FALSE(found.sequences.empty());
  EXPECT_EQ(LettersOf(found.sequences[0]), "AB");
  EXPECT_EQ(found.sequences[0].count, 5);
}

TEST(KernelSequences, APairOfNeighboursIsInOneSequence) {
  std::mt19937 random(3);
  std::string letters;
  for (int i = 0; i < 5'000; ++i) letters += static_cast<char>('A' + random() % 5);
  const RankSequences found = Follow(WorkOf(letters));
  ASSERT_FALSE(found.sequences.empty());
  std::vector<std::string> pairs;
  for (const KernelSequence& sequence : found.sequences) {
    const std::string text = LettersOf(sequence);
    for (size_t i = 1; i < text.size(); ++i) pairs.push_back(text.substr(i - 1, 2));
    // Each is counted as a search that goes on behind what it found does.
    int64_t count = 0;
    for (size_t at = letters.find(text); at != std::string::npos; at = letters.find(text, at + text.size()))
      ++count;
    EXPECT_EQ(sequence.count, count) << text;
    EXPECT_EQ(sequence.kernel_ns, count * static_cast<int64_t>(text.size()) * 10) << text;
    EXPECT_EQ(sequence.gap_ns, count * static_cast<int64_t>(text.size() - 1) * 5) << text;
    EXPECT_EQ(sequence.first_ns, static_cast<int64_t>(letters.find(text)) * 15) << text;
  }
  std::ranges::sort(pairs);
  EXPECT_EQ(std::ranges::adjacent_find(pairs), pairs.end());
}

TEST(KernelSequences, WhatIsBeyondTheBoundIsCounted) {
  std::mt19937 random(5);
  std::string letters;
  for (int i = 0; i < 40'000; ++i) letters += static_cast<char>('A' + random() % 26);
  const RankSequences found = Follow(WorkOf(letters));
  EXPECT_GT(found.beyond_bound, 0);
  for (const KernelSequence& sequence : found.sequences) {
    const std::string text = LettersOf(sequence);
    int64_t count = 0;
    for (size_t at = letters.find(text); at != std::string::npos; at = letters.find(text, at + text.size()))
      ++count;
    EXPECT_EQ(sequence.count, count) << "what is kept is complete: " << text;
  }
  std::vector<GpuRecord> work;
  for (uint32_t stream = 0; stream < SequenceFollower::kMaxStreams + 3; ++stream)
    work.push_back({.start_ns = stream, .end_ns = stream + 1, .stream = stream});
  EXPECT_EQ(Follow(work).beyond_bound, 3);
}

}  // namespace
}  // namespace gpusonde::analyze
