// SPDX-License-Identifier: Apache-2.0
#include "serve/refusals.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <span>
#include <utility>

#include "base/counted.h"

namespace gpusonde::serve {
namespace {

constexpr size_t kMaxReasons = 5;
constexpr size_t kMaxNamed = 5;

// "a, b", or "a, b, c, d, e and 3 more hosts"
std::string NamesText(std::span<const std::string> names) {
  const size_t named = std::min(names.size(), kMaxNamed);
  std::string text = fmt::format("{}", fmt::join(names.first(named), ", "));
  if (named < names.size())
    text += fmt::format(" and {}", Counted(static_cast<int64_t>(names.size() - named), "more host"));
  return text;
}

}  // namespace

void Refusals::Add(const std::string& host, std::string why, int64_t now_ns, const Id128& again_from) {
  const std::scoped_lock lock(mutex_);
  by_host_[host] = {.why = std::move(why), .time_ns = now_ns, .again_from = again_from};
  if (by_host_.size() > kMaxRefusedHosts)
    by_host_.erase(
        std::ranges::min_element(by_host_, {}, [](const auto& entry) { return entry.second.time_ns; }));
}

void Refusals::ForgetStored(const std::string& host, const Id128& spool) {
  const std::scoped_lock lock(mutex_);
  const auto refusal = by_host_.find(host);
  if (refusal != by_host_.end() && refusal->second.again_from == spool) by_host_.erase(refusal);
}

std::vector<std::string> Refusals::Sentences(int64_t now_ns, const std::string& host) const {
  std::map<std::string, std::vector<std::string>> names_of;
  {
    const std::scoped_lock lock(mutex_);
    for (const auto& [name, refusal] : by_host_)
      if (now_ns - refusal.time_ns < kLatelyNs && (host.empty() || host == name))
        names_of[refusal.why].push_back(name);
  }
  std::vector<std::pair<std::string, std::vector<std::string>>> reasons(names_of.begin(), names_of.end());
  std::ranges::stable_sort(reasons, std::greater(), [](const auto& reason) { return reason.second.size(); });
  std::vector<std::string> sentences;
  size_t others = 0;
  for (const auto& [why, names] : reasons) {
    if (sentences.size() < kMaxReasons)
      sentences.push_back(fmt::format("Rows of {} are refused: {}.", NamesText(names), why));
    else
      others += names.size();
  }
  if (others > 0)
    sentences.push_back(fmt::format("Rows of {} are refused for other reasons, which the server's log names.",
                                    Counted(static_cast<int64_t>(others), "more host")));
  return sentences;
}

}  // namespace gpusonde::serve
