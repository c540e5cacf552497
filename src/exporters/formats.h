// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "exporters/exporter.h"

namespace gpusonde::exporters {

extern const Exporter kFolded;
extern const Exporter kPprof;
extern const Exporter kSpeedscope;

}  // namespace gpusonde::exporters
