// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "base/fd.h"
#include "doctor/advice.h"
#include "doctor/probes.h"

namespace gpusonde::doctor {

// For unprivileged readers, the kernel shows all addresses as zero.
Finding ProbeKallsyms(const Settings&) {
  const Result<std::string> text = ReadFile("/proc/kallsyms");
  const std::string advice =
      "run as root, or give the program CAP_SYSLOG; without it kernel frames are unnamed";
  if (!text.has_value()) return Fails(text.error().message, advice);
  size_t symbols = 0;
  size_t named = 0;
  for (size_t at = 0; at < text->size();) {
    const size_t end = std::min(text->find('\n', at), text->size());
    ++symbols;
    // "ffffffff81000000 T _text": the address ends at the first space.
    named += text->find_first_not_of('0', at) < text->find(' ', at) ? 1 : 0;
    at = end + 1;
  }
  // Some per-CPU symbols are at address zero, so a few zeros mean nothing.
  if (named * 2 < symbols || symbols == 0)
    return Fails(fmt::format("/proc/kallsyms hides its addresses (kernel.kptr_restrict is {})",
                             KernelSetting("kernel/kptr_restrict")),
                 advice);
  return Works(fmt::format("{} symbols of the kernel", named));
}

}  // namespace gpusonde::doctor
