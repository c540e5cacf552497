// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "exporters/exporter.h"

namespace gpusonde::exporters {

// How many profiles of OpenTelemetry's protocol kOtlp makes of a profile: two per container and host, if all
// of its threads have samples. Thread-safe.
int64_t CountOtlpProfiles(const model::Profile& profile, const Options& options);

}  // namespace gpusonde::exporters
