// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time_range.h"
#include "model/tables/incidents.h"
#include "store/store.h"

namespace gpusonde::store {

struct NewestIncidents {
  struct Line {
    model::Incident incident;
    std::string process_name;
    int32_t pid = 0;
  };
  std::vector<Line> lines;  // the newest first
  int64_t count = 0;        // of all
};

// Incidents that overlap the range, without what explains them: one statement, for lists of many hosts. At
// most `most` lines. Errors: those of Store::Query.
Result<NewestIncidents> ReadNewestIncidents(Store& store, const TimeRange& range, int64_t most);

}  // namespace gpusonde::store
