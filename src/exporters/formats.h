// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "exporters/exporter.h"

namespace gpusonde::exporters {

extern const Exporter kFolded;

}  // namespace gpusonde::exporters
