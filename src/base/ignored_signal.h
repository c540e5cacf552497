// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>

namespace gpusonde {

// Whether this process ignores the signal, as it may have inherited: SIGHUP from nohup(1), SIGINT from a
// shell that started it in a script's background. Async-signal-safe.
inline bool IsIgnored(int number) {
  struct sigaction action{};
  return ::sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace gpusonde
