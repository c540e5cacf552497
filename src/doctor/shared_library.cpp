// SPDX-License-Identifier: Apache-2.0
#include "doctor/shared_library.h"

#include <dlfcn.h>
#include <link.h>

namespace gpusonde::doctor {

FoundLibrary FindLibrary(std::initializer_list<const char*> names, const char* function) {
  FoundLibrary found;
  for (const char* name : names) {
    void* handle = ::dlopen(name, RTLD_LAZY | RTLD_LOCAL);
    if (handle == nullptr) {
      found.error = ::dlerror();
      continue;
    }
    if (::dlsym(handle, function) == nullptr) {
      found.error = ::dlerror();
    } else {
      const link_map* map = nullptr;
      found.path = ::dlinfo(handle, RTLD_DI_LINKMAP, static_cast<void*>(&map)) == 0 ? map->l_name : name;
      found.error.clear();
    }
    ::dlclose(handle);
    if (!found.path.empty()) break;
  }
  return found;
}

}  // namespace gpusonde::doctor
