// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/id128.h"
#include "model/batch.h"
#include "model/tables/containers.h"
#include "sources/proc/containers.h"

namespace gpusonde::agent {

// Writes a row for each container in which a process with a row runs, once its name is found. Not
// thread-safe.
class ContainerRows {
 public:
  using Find = std::function<std::optional<proc::ContainerName>(std::string_view id)>;

  ContainerRows() : ContainerRows([](std::string_view id) { return proc::FindContainerName(id); }) {}
  explicit ContainerRows(Find find) : find_(std::move(find)) {}

  // Looks at the processes of a batch; those of other tables are ignored.
  void Ingest(const model::Batch& batch);

  // The rows since the last call.
  std::optional<model::Batch> DrainRows();

  // Makes the next rows repeat every container that a process's row refers to, as a new store needs them.
  void Rewrite() { tries_left_.clear(); }

 private:
  Find find_;
  // How often each container is still looked for: its names may come later than its first process. 0 once
  // found.
  std::unordered_map<std::string, int32_t> tries_left_;
  model::BatchBuilder<decltype(model::kContainers)> rows_{model::kContainers};
};

}  // namespace gpusonde::agent
