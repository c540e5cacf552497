// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "analyze/report.h"
#include "analyze/report/sentences.h"
#include "model/short_names.h"

// What a report says of steps.
namespace gpusonde::analyze {

// How long steps take, and what the devices do in typical ones; nullopt without steps.
std::optional<std::string> StepsSentence(const Report& report);

// The rank whose slow steps cost most: the slowest of them beside a typical one.
std::optional<Finding> SlowestStep(const Report& report, const model::ShortNames& shown);

}  // namespace gpusonde::analyze
