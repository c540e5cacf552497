// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "diagnose/diagnosis.h"

namespace gpusonde::diagnose {

// What was found, for a person: programs with their steps, and each incident with its sentence and what the
// excess is made up of.
std::string FormatText(const Diagnosis& diagnosis);

// The same as JSON (docs/diagnose.md).
std::string FormatJson(const Diagnosis& diagnosis);

// One incident as it stands, or a warning, for somebody who is told of it: JSON on one line
// (docs/diagnose.md).
std::string FormatNotice(const Report& report, std::string_view machine);
std::string FormatNotice(const model::Warning& warning, std::string_view machine);

}  // namespace gpusonde::diagnose
