// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "analyze/report.h"

namespace gpusonde::analyze {
namespace {

TEST(Notes, EachKindHasANameAndASentenceOfItsOwn) {
  Report report;
  report.traces.push_back({.path = "a.json", .format = "kineto-json"});
  std::set<std::string> names, sentences;
  for (size_t kind = 0; kind < kNoteKinds; ++kind) {
    const Note note{.kind = static_cast<NoteKind>(kind), .count = 3, .time = Note::Time{1, 2'000, 5'000}};
    names.emplace(Name(note.kind));
    sentences.insert(SentenceOf(note, report));
  }
  EXPECT_THAT(names, testing::SizeIs(kNoteKinds));
  EXPECT_THAT(sentences, testing::SizeIs(kNoteKinds));
  for (const std::string& sentence : sentences) EXPECT_THAT(sentence, testing::Not(testing::HasSubstr("{")));
}

TEST(Notes, SentencesAgreeWithTheirNumber) {
  Report report;
  report.traces.push_back({.path = "a.json", .format = "kineto-json"});
  EXPECT_EQ(SentenceOf({.kind = NoteKind::kBadTime, .count = 1}, report),
            "1 event with an impossible time is left out");
  EXPECT_EQ(SentenceOf({.kind = NoteKind::kBadTime, .count = 2}, report),
            "2 events with an impossible time are left out");
  EXPECT_THAT(SentenceOf({.kind = NoteKind::kGpuClockAhead, .count = -2'000}, report),
              testing::StartsWith("the GPU's clock is 2 µs behind the CPU's"));
  EXPECT_THAT(
      SentenceOf({.kind = NoteKind::kLeftOut, .count = 6'000, .time = Note::Time{2, 2'000, 5'000}}, report),
      testing::StartsWith("it has no event of any kind for 6 µs (2 times, the longest from 2 to 5 µs): its"));
}

}  // namespace
}  // namespace gpusonde::analyze
