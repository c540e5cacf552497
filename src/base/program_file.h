// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"

namespace gpusonde {

// The absolute path of the file from which this program's own code is mapped. Not /proc/self/exe: in the
// package (docs/package.md) that is the loader, which was started and has mapped the program. Errors: those
// of reading /proc/self/maps.
Result<std::string> ProgramFile();

// The folder in which this program is installed: the parent of its `bin` or `libexec`. Its libraries and data
// are in `lib` and `share` there. Errors: as ProgramFile.
Result<std::string> InstallFolder();

}  // namespace gpusonde
