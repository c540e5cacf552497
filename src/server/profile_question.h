// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"
#include "model/profile.h"
#include "model/selection.h"
#include "server/api.h"
#include "server/query_parameters.h"

namespace gpusonde::server {

// What a flame graph shows.
struct ProfileQuestion {
  model::ProfileType type = model::ProfileType::kCpu;
  model::Selection selection;
};

// Takes `type`, `wait` and those of the selection. Errors: kInvalidArgument, naming the parameter.
Result<ProfileQuestion> TakeProfileQuestion(QueryParameters& parameters);

// Errors: those of the data.
Result<model::Profile> ReadProfile(ApiData& data, model::ProfileType type, const model::Selection& selection);

}  // namespace gpusonde::server
