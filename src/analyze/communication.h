// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <regex>
#include <string>
#include <string_view>

#include "base/result.h"

namespace gpusonde::analyze {

// Recognises kernels that communicate with other ranks by their names: those of known libraries
// (communication_kernels.inc), and what the user adds. Thread-safe.
class CommunicationKernels {
 public:
  CommunicationKernels() = default;
  // Also kernels in whose names the expression (ECMAScript) finds something; of longer names, in their first
  // 4 KiB. Errors: kInvalidArgument if it is none.
  static Result<CommunicationKernels> With(const std::string& expression);

  // "NCCL" and the like; kAdded for a kernel that only the expression finds; empty for any other kernel.
  std::string_view LibraryOf(std::string_view kernel) const;
  const std::string& expression() const { return expression_; }

  static constexpr std::string_view kAdded = "--communication";

 private:
  std::string expression_;
  std::optional<std::regex> compiled_;
};

}  // namespace gpusonde::analyze
