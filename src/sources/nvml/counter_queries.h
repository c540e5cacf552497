// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sources/nvml/queries.h"

// The queries of counters of newer devices (Query::read): each call reads many at once.
namespace gpusonde::nvml {

// GPM, of a device or a MIG instance: means since the last readings; the first has no values.
gpusonde_nvml_result QueryGpm(const Functions& f, void* device, DeviceCache& cache, Readings& readings);

// Data sent and received over all NVLinks, and their errors.
gpusonde_nvml_result QueryNvlink(const Functions& f, void* device, DeviceCache& cache, Readings& readings);

// Rows of memory that were replaced.
gpusonde_nvml_result QueryRemappedRows(const Functions& f, void* device, DeviceCache& cache,
                                       Readings& readings);

}  // namespace gpusonde::nvml
