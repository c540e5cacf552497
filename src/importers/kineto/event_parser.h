// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string>

#include "base/result.h"
#include "importers/event.h"
#include "importers/kineto/names.h"
#include "importers/kineto/xla_tracks.h"

namespace gpusonde::importers::kineto {

// Parses arrays of trace events, for one thread.
class EventParser {
 public:
  // `xla` is complete before the first call of Parse.
  EventParser(EventSink& sink, Reading reading, std::shared_ptr<const XlaTracks> xla);
  EventParser(const EventParser&) = delete;
  EventParser& operator=(const EventParser&) = delete;
  ~EventParser();

  // `events` is a JSON array, and `ends` where its elements end; it may be empty. Every element goes to the
  // sink: as an event, as Other, or counted as dropped. Errors: kCorrupt for invalid JSON, with its offset in
  // `events`; earlier elements are in the sink then.
  Status Parse(const std::string& events, std::span<const uint32_t> ends);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace gpusonde::importers::kineto
