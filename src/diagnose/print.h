// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "diagnose/diagnosis.h"

namespace gpusonde::diagnose {

// Formats the programs with their steps, and each incident with its sentence and the breakdown of the excess
// time.
std::string FormatText(const Diagnosis& diagnosis);

// Formats the same as JSON (docs/diagnose.md).
std::string FormatJson(const Diagnosis& diagnosis);

// Formats the current state of one incident, or a warning, as the body of a webhook: JSON on one line
// (docs/diagnose.md).
std::string FormatNotice(const Report& report, std::string_view machine);
std::string FormatNotice(const model::Warning& warning, std::string_view machine);

}  // namespace gpusonde::diagnose
