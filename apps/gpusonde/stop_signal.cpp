// SPDX-License-Identifier: Apache-2.0
#include "stop_signal.h"

#include <semaphore.h>

#include <cerrno>
#include <csignal>
#include <initializer_list>

namespace gpusonde::app {
namespace {

sem_t stop;

void OnStop(int) { sem_post(&stop); }  // async-signal-safe

}  // namespace

void CatchStopSignals() {
  sem_init(&stop, 0, 0);
  struct sigaction action{};
  action.sa_handler = OnStop;
  action.sa_flags = SA_RESETHAND;
  for (const int number : {SIGINT, SIGTERM}) ::sigaction(number, &action, nullptr);
  if (!IgnoresHangup()) ::sigaction(SIGHUP, &action, nullptr);
}

bool IgnoresHangup() {
  struct sigaction hangup{};
  return ::sigaction(SIGHUP, nullptr, &hangup) == 0 && hangup.sa_handler == SIG_IGN;
}

void WaitForStopSignal() {
  while (sem_wait(&stop) != 0 && errno == EINTR) {
  }
}

bool StopRequested() {
  int posted = 0;
  sem_getvalue(&stop, &posted);
  return posted > 0;
}

}  // namespace gpusonde::app
