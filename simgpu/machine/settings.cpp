// SPDX-License-Identifier: Apache-2.0
#include "simgpu/machine/settings.h"

#include <cerrno>
#include <cstdlib>

namespace simgpu {

const char* TextSetting(const char* name, const char* otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr || *text == '\0' ? otherwise : text;
}

int64_t IntegerSetting(const char* name, int64_t otherwise, int64_t lowest, int64_t highest) {
  const char* text = TextSetting(name, nullptr);
  if (text == nullptr) return otherwise;
  char* end = nullptr;
  errno = 0;
  const long long value = std::strtoll(text, &end, 10);
  return errno == 0 && *end == '\0' && value >= lowest && value <= highest ? value : otherwise;
}

double NumberSetting(const char* name, double otherwise, double lowest, double highest) {
  const char* text = TextSetting(name, nullptr);
  if (text == nullptr) return otherwise;
  char* end = nullptr;
  const double value = std::strtod(text, &end);
  return *end == '\0' && value >= lowest && value <= highest ? value : otherwise;
}

}  // namespace simgpu
