// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>

namespace gpusonde {

// Blocks all signals of the calling thread while it lives, also in children forked meanwhile. Those that
// arrive take effect at its end.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

  // What was blocked before.
  const sigset_t& before() const { return before_; }

 private:
  sigset_t before_;
};

}  // namespace gpusonde
