// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <string>

#include "convert/import_trace.h"
#include "model/batch.h"
#include "model/schema.h"

inline gpusonde::Status ConvertWith(const gpusonde::convert::ImportOptions& options,
                                    const std::string& path) {
  const auto check = [](const gpusonde::model::Batch& batch) -> gpusonde::Status {
    if (!gpusonde::model::Validate(batch).has_value() ||
        !gpusonde::model::CheckAgainstSchema(batch).has_value())
      std::abort();
    return {};
  };
  ASSIGN_OR_RETURN(const auto info, gpusonde::convert::ReadInfo(path, options));
  TRY(gpusonde::convert::ImportTrace(path, info, options, check));
  return {};
}

// Makes rows of a trace as `gpusonde import` does, with and without --partial. The store must accept them.
inline void ConvertFile(const std::string& path) {
  for (const bool partial : {false, true}) {
    const gpusonde::Status done = ConvertWith({.partial = partial, .metrics = true}, path);
    if (!done.has_value() && done.error().message.empty()) std::abort();  // an error needs a message
  }
}
