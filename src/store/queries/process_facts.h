// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"
#include "model/process_facts.h"
#include "model/profile.h"
#include "store/store.h"

namespace gpusonde::store {

// Facts about the processes of a profile; those without a row are absent. Errors: those of Store::Query.
Result<model::ProcessFactsById> ReadProcessFacts(Store& store, const model::Profile& profile);

}  // namespace gpusonde::store
