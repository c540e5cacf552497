// SPDX-License-Identifier: Apache-2.0
#include "sources/ebpf/libbpf_log.h"

#include <bpf/libbpf.h>

#include <cstdio>
#include <cstring>
#include <string_view>

#include "base/log.h"

namespace gpusonde::ebpf {
namespace {

int Print(libbpf_print_level level, const char* format, va_list arguments) {
  if (level == LIBBPF_DEBUG || !LogEnabled(LogLevel::kDebug)) return 0;
  char line[1024];
  std::vsnprintf(line, sizeof line, format, arguments);
  LogDebug("libbpf: {}", std::string_view(line, std::strcspn(line, "\n")));
  return 0;
}

}  // namespace

void SendLibbpfToLog() { libbpf_set_print(Print); }

}  // namespace gpusonde::ebpf
