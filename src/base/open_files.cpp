// SPDX-License-Identifier: Apache-2.0
#include "base/open_files.h"

#include <sys/resource.h>

namespace gpusonde {

int64_t RaiseOpenFiles() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  const rlim_t before = limit.rlim_cur;
  limit.rlim_cur = limit.rlim_max;
  return static_cast<int64_t>(::setrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_max : before);
}

}  // namespace gpusonde
