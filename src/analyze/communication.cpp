// SPDX-License-Identifier: Apache-2.0
#include "analyze/communication.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/ascii.h"

namespace gpusonde::analyze {
namespace {

struct Known {
  std::string_view text;
  std::string_view library;
};

constexpr Known kKnown[] = {
#define COMMUNICATION_KERNEL(text, library, source) Known{text, library},
#include "analyze/communication_kernels.inc"
#undef COMMUNICATION_KERNEL
};

// std::regex recurses once per character, which overflows the stack on names of a few 100 KiB.
constexpr size_t kMaxMatched = 4096;

}  // namespace

Result<CommunicationKernels> CommunicationKernels::With(const std::string& expression) {
  CommunicationKernels kernels;
  kernels.expression_ = expression;
  try {
    kernels.compiled_.emplace(expression, std::regex::ECMAScript);
  } catch (const std::regex_error& error) {
    return Fail(ErrorCode::kInvalidArgument, fmt::format("--communication: {}", error.what()));
  }
  return kernels;
}

std::string_view CommunicationKernels::LibraryOf(std::string_view kernel) const {
  const std::string lower = ToLower(std::string(kernel));
  for (const Known& known : kKnown)
    if (lower.find(known.text) != std::string::npos) return known.library;
  if (!compiled_.has_value()) return {};
  const std::string_view head = kernel.substr(0, kMaxMatched);
  try {
    return std::regex_search(head.begin(), head.end(), *compiled_) ? kAdded : std::string_view();
  } catch (const std::regex_error&) {  // too complex for this name
    return {};
  }
}

}  // namespace gpusonde::analyze
