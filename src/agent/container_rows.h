// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/id128.h"
#include "model/batch.h"
#include "model/tables/containers.h"
#include "model/tables/pod_labels.h"
#include "sources/pods/pod_resources.h"
#include "sources/pods/runtime.h"
#include "sources/proc/containers.h"

namespace gpusonde::agent {

// Writes a row for each container in which a process with a row runs, once its name is found: by the
// container runtime if it is asked, else in files. Not thread-safe.
class ContainerRows {
 public:
  using Find = std::function<std::optional<proc::ContainerName>(std::string_view id)>;

  ContainerRows() : ContainerRows([](std::string_view id) { return proc::FindContainerName(id); }) {}
  explicit ContainerRows(Find find) : find_(std::move(find)) {}

  // Looks at the processes of a batch; those of other tables are ignored.
  void Ingest(const model::Batch& batch);

  // What the container runtime says of its containers, which takes precedence.
  void Update(pods::PodContainers containers);

  // Also writes the containers of pods that have GPUs, though no process in them has a row.
  void Include(const pods::PodDevices& devices, const Id128& source);

  // Whether a container has appeared, since the last call, that the runtime didn't name.
  bool TakeUnknown() { return std::exchange(unknown_, false); }

  // The rows since the last call: of containers, and of the labels of their pods.
  std::optional<model::Batch> DrainRows();
  std::optional<model::Batch> DrainLabels();

  // Makes the next rows repeat every container that a process's row refers to, as a new store needs them.
  void Rewrite() { known_.clear(); }

 private:
  struct Known {
    Id128 source;
    // How often it is still looked for in files: its names may come later than its first process. 0 once
    // found.
    int32_t tries_left = 5;
    std::optional<pods::PodContainer> written;  // as the runtime has it
  };
  void Write(const std::string& id, const pods::PodContainer& container, Known& known);

  Find find_;
  pods::PodContainers by_runtime_;
  std::unordered_map<std::string, Known> known_;
  bool unknown_ = false;
  model::BatchBuilder<decltype(model::kContainers)> rows_{model::kContainers};
  model::BatchBuilder<decltype(model::kPodLabels)> labels_{model::kPodLabels};
};

}  // namespace gpusonde::agent
