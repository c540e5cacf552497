// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/id128.h"
#include "model/table.h"

namespace gpusonde::model {

// One row per label of the pod of a container.
struct PodLabel {
  std::string container;
  std::string name;
  std::string value;
  Id128 source;
};

inline constexpr Table kPodLabels("pod_labels", Key{2},
                                  "One row per label of a container's pod that --pod-labels names",
                                  Field("container", &PodLabel::container, "", "id of the container"),
                                  Field("name", &PodLabel::name, "", "name of the label"),
                                  Field("value", &PodLabel::value, "", "value of the label"),
                                  Field("source", &PodLabel::source, "", "the run that found it"));

}  // namespace gpusonde::model
