// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "model/batch.h"
#include "model/tables/binaries.h"
#include "model/tables/drops.h"
#include "model/tables/functions.h"
#include "model/tables/locations.h"
#include "model/tables/mappings.h"
#include "model/tables/processes.h"
#include "model/tables/samples.h"
#include "model/tables/sources.h"
#include "model/tables/stacks.h"
#include "model/tables/threads.h"

namespace gpusonde::agent {

// The rows that one round of gathering makes, by table; what everything in this folder writes into.
struct Rows {
  model::BatchBuilder<decltype(model::kSources)> sources{model::kSources};
  model::BatchBuilder<decltype(model::kProcesses)> processes{model::kProcesses};
  model::BatchBuilder<decltype(model::kThreads)> threads{model::kThreads};
  model::BatchBuilder<decltype(model::kBinaries)> binaries{model::kBinaries};
  model::BatchBuilder<decltype(model::kMappings)> mappings{model::kMappings};
  model::BatchBuilder<decltype(model::kFunctions)> functions{model::kFunctions};
  model::BatchBuilder<decltype(model::kLocations)> locations{model::kLocations};
  model::BatchBuilder<decltype(model::kStacks)> stacks{model::kStacks};
  model::BatchBuilder<decltype(model::kSamples)> samples{model::kSamples};
  model::BatchBuilder<decltype(model::kDrops)> drops{model::kDrops};

  // Every table that has rows, names before what refers to them; leaves all empty.
  std::vector<model::Batch> Take();
};

}  // namespace gpusonde::agent
