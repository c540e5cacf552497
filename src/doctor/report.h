// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/terminal.h"
#include "doctor/capability.h"

namespace gpusonde::doctor {

struct Examined {
  const Capability* capability = nullptr;
  Finding finding;
};

// The findings about one machine.
struct Report {
  std::string host;
  std::string kernel;              // release, "6.1.0-30-amd64"
  std::vector<Examined> examined;  // in the order of AllCapabilities()

  // Whether everything that `record` needs works.
  bool CanRecord() const;
};

// Runs every probe; takes well under a second.
Report Examine(const Settings& settings);

// As text for this terminal: grouped by use, columns aligned.
std::string FormatText(const Report& report, const Terminal& terminal);

// One JSON object, keys as in docs/doctor.md.
std::string FormatJson(const Report& report);

}  // namespace gpusonde::doctor
