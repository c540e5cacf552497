// SPDX-License-Identifier: Apache-2.0
#include "compare/kinds_of_work.h"

#include <algorithm>
#include <string>

#include "base/ascii.h"

namespace gpusonde::compare {
namespace {

constexpr size_t kMaxReadOfName = 4096;

struct KindRule {
  std::string_view part, kind;
};
constexpr KindRule kKindRules[] = {
#include "compare/kinds_of_work.inc"
};

}  // namespace

std::string_view KindOfWork(std::string_view kernel, bool communication) {
  if (communication) return "communication";
  const std::string name = ToLower(std::string(kernel.substr(0, kMaxReadOfName)));
  const auto* const found =
      std::ranges::find_if(kKindRules, [&](const KindRule& rule) { return name.contains(rule.part); });
  return found != std::end(kKindRules) ? found->kind : "other";
}

}  // namespace gpusonde::compare
