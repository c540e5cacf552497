// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "importers/event.h"

namespace gpusonde::analyze {

// What a caveat is about. The first, up to kBeginEnd, are why events were dropped, as importers::Dropped.
enum class NoteKind : uint8_t {
  kBadTime,
  kNegativeDuration,
  kWrongType,
  kMalformed,
  kNotCollected,
  kBeginEnd,
  kTruncated,
  kUnreadableParts,
  kLeftOut,
  kNoEvents,
  kNotAligned,
  kMetricsWithoutNumber,
  kMetricsBeyondBound,
  kNamesBeyondBound,
  kSequencesBeyondBound,
  kSyncsBeyondBound,
  kCommunicatorsUnknown,
  kCommunicatorsBeyondBound,
  kMessageSizesInvalid,
  kMessageSizesBeyondBound,
  kCollectivesLost,
  kCollectivesBeyondBound,
  kNoOperators,
  kNoSteps,
  kStepsBeyondBound,
  kNoCriticalPaths,
  kGpuClockAhead,
  kStartsBeforeLaunch,
  kSharedNumbers,
  kNumbersTooLarge,
  kSampledCalls,
  kLaunchersUnknown,
};
inline constexpr size_t kNoteKinds = static_cast<size_t>(NoteKind::kLaunchersUnknown) + 1;

constexpr NoteKind NoteOf(importers::Dropped reason) { return static_cast<NoteKind>(reason); }

// As in the JSON: "bad_time".
std::string_view Name(NoteKind kind);

// A caveat about a trace's numbers.
struct Note {
  size_t trace = 0;
  NoteKind kind = NoteKind::kTruncated;
  int64_t count = 0;
  // What it is about, by the trace's own clock; of several times the longest.
  struct Time {
    int64_t times = 0;
    int64_t begin_ns = 0;
    int64_t end_ns = 0;
  };
  std::optional<Time> time = std::nullopt;
};

}  // namespace gpusonde::analyze
