// SPDX-License-Identifier: Apache-2.0
#include "stop_signal.h"

#include <semaphore.h>

#include <cerrno>
#include <csignal>
#include <initializer_list>

#include "base/ignored_signal.h"

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
  if (!IsIgnored(SIGHUP)) ::sigaction(SIGHUP, &action, nullptr);
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
