// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <string>

namespace gpusonde::doctor {

struct FoundLibrary {
  std::string path;   // as the loader found it; empty when none loads
  std::string error;  // the loader's last error, if none loads or the function is missing
};

// Loads the first of `names` that exists, looks up `function` and closes the library again; runs nothing but
// its constructors. A name with a slash is a path.
FoundLibrary FindLibrary(std::initializer_list<const char*> names, const char* function);

}  // namespace gpusonde::doctor
