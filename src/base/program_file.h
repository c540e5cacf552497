// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"

namespace gpusonde {

// The file that this program's own code is mapped from, an absolute path. Not /proc/self/exe: in the package
// (docs/decisions/0013-a-package-with-its-own-loader.md) that is the loader, which was started by its name
// and mapped the program itself. Errors: those of reading /proc/self/maps.
Result<std::string> ProgramFile();

// The folder that this program was installed to: the one above `bin` or `libexec`, where the program is. What
// comes along with it lies in `lib` and `share` there. Errors: as ProgramFile.
Result<std::string> InstallFolder();

}  // namespace gpusonde
