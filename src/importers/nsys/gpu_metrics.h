// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"
#include "importers/clocks.h"
#include "importers/trace.h"

namespace gpusonde::importers::nsys {

// The clocks among the GPU metrics of an export (`nsys profile --gpu-metrics-devices`), which come at 10 kHz
// by default: of each GPU the metric "GPC Clock Frequency [MHz]". The tables are as public scripts read them,
// and unconfirmed: no trace that we have holds any. Errors: those of reading the database.
Result<Clocks> ReadGpuMetrics(const std::string& path, const OpenOptions& options);

}  // namespace gpusonde::importers::nsys
