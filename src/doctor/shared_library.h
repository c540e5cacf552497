// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <string>

namespace gpusonde::doctor {

struct FoundLibrary {
  std::string path;   // as the loader found it; empty when none loads
  std::string error;  // the loader's last word when none loads or the function is missing
};

// Loads the first of `names` that there is, looks `function` up in it and closes it again; calls nothing but
// what the library runs by itself when loaded. A name with a slash is a path.
FoundLibrary FindLibrary(std::initializer_list<const char*> names, const char* function);

}  // namespace gpusonde::doctor
