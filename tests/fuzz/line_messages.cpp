// SPDX-License-Identifier: Apache-2.0
// Messages of the process that reads debug information, which may be compromised by its input.
#include <sys/socket.h>

#include <cstdint>
#include <cstdlib>

#include "symbols/line_protocol.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) std::abort();
  const gpusonde::Fd one(ends[0]), other(ends[1]);
  if (size > 0 && size < 60'000) {
    for (const gpusonde::Fd* end : {&one, &other}) (void)!::send(end->get(), data, size, 0);
    (void)gpusonde::symbols::ReceiveRequest(one.get());
    (void)gpusonde::symbols::ReceiveAnswer(other.get(), gpusonde::Wait::kNo);
  }
  return 0;
}
