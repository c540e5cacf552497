// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sources/nvml/questions.h"

// The questions about counters of newer devices (Question::ask): each call answers many at once.
namespace gpusonde::nvml {

// GPM, of a device or a MIG instance: means since the last answer; the first has no values.
gpusonde_nvml_result AskGpm(const Functions& f, void* device, Memory& memory, Answer& answer);

// Data sent and received over all NVLinks, and their errors.
gpusonde_nvml_result AskNvlink(const Functions& f, void* device, Memory& memory, Answer& answer);

// Rows of memory that were replaced.
gpusonde_nvml_result AskRemappedRows(const Functions& f, void* device, Memory& memory, Answer& answer);

}  // namespace gpusonde::nvml
