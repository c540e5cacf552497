// SPDX-License-Identifier: Apache-2.0
#include "server/frame_functions.h"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace gpusonde::server {
namespace {

using model::Profile;

auto BinaryOrder(const Profile::Binary& binary) {
  return std::tie(binary.name, binary.path, binary.build_id);
}

// Chooses the place of a merged function: known before unknown, then the first.
auto PlaceOrder(const FrameFunctions::Function& function) {
  return std::tuple(function.file.empty(), function.file, function.line == 0, function.line);
}

}  // namespace

FrameFunctions::Identity FrameFunctions::IdentityOf(const Function& function) {
  return {function.name, function.binary, function.kind,
          function.binary < 0 ? function.file : std::string_view()};
}

size_t FrameFunctions::IdentityHash::operator()(const Identity& identity) const noexcept {
  const auto& [name, binary, kind, file] = identity;
  const std::hash<std::string_view> hash;
  constexpr size_t kOdd = 0x9e3779b97f4a7c15;  // 2^64 / golden ratio: spreads small integers over all bits
  return hash(name) ^ (hash(file) * 3) ^
         ((static_cast<size_t>(binary) << 8 | static_cast<size_t>(kind)) * kOdd);
}

FrameFunctions::FrameFunctions(const Profile& profile) {
  const std::vector<int32_t> binary_at = OrderBinaries(profile);
  first_.reserve(profile.locations.size() + 2);
  first_.push_back(0);
  AddFrame(profile, -1, 0, -1);
  first_.push_back(frames_.size());
  for (size_t i = 0; i < profile.locations.size(); ++i) {
    const Profile::Location& location = profile.locations[i];
    const int32_t binary = location.binary < 0 ? -1 : binary_at[static_cast<size_t>(location.binary)];
    if (location.lines.empty()) AddFrame(profile, static_cast<int32_t>(i), 0, binary);
    for (size_t line = location.lines.size(); line-- > 0;)
      AddFrame(profile, static_cast<int32_t>(i), line, binary);
    first_.push_back(frames_.size());
  }
  OrderFunctions();
}

std::vector<int32_t> FrameFunctions::OrderBinaries(const Profile& profile) {
  binaries_ = profile.binaries;
  std::ranges::sort(binaries_, {}, BinaryOrder);
  const auto repeated = std::ranges::unique(binaries_, {}, BinaryOrder);
  binaries_.erase(repeated.begin(), repeated.end());
  std::vector<int32_t> index;
  index.reserve(profile.binaries.size());
  for (const Profile::Binary& binary : profile.binaries) {
    const auto found = std::ranges::lower_bound(binaries_, BinaryOrder(binary), {}, BinaryOrder);
    index.push_back(static_cast<int32_t>(found - binaries_.begin()));
  }
  return index;
}

void FrameFunctions::AddFrame(const Profile& profile, int32_t location, size_t line, int32_t binary) {
  Function frame{.binary = binary};
  int32_t symbol = -1;
  if (location >= 0) {
    const Profile::Location& at = profile.locations[static_cast<size_t>(location)];
    frame.kind = at.kind;
    if (line < at.lines.size()) symbol = at.lines[line].function;
  }
  if (symbol >= 0) {
    const Profile::Function& function = profile.functions[static_cast<size_t>(symbol)];
    frame.name = function.name;
    frame.file = function.file;
    frame.line = function.line;
  } else {
    frame.name = names_.emplace_back(model::FrameName(profile, location, line));
  }
  const auto [entry, is_new] = index_.try_emplace(IdentityOf(frame), static_cast<int32_t>(functions_.size()));
  if (is_new)
    functions_.push_back(frame);
  else if (Function& known = functions_[static_cast<size_t>(entry->second)];
           PlaceOrder(frame) < PlaceOrder(known))
    known = frame;
  frames_.push_back(entry->second);
}

void FrameFunctions::OrderFunctions() {
  const auto identity_at = [this](int32_t i) { return IdentityOf(functions_[static_cast<size_t>(i)]); };
  std::vector<int32_t> order(functions_.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, identity_at);

  std::vector<Function> ordered;
  std::vector<int32_t> rank(functions_.size());
  ordered.reserve(functions_.size());
  for (const int32_t i : order) {
    rank[static_cast<size_t>(i)] = static_cast<int32_t>(ordered.size());
    ordered.push_back(functions_[static_cast<size_t>(i)]);
  }
  for (int32_t& frame : frames_) frame = rank[static_cast<size_t>(frame)];
  functions_ = std::move(ordered);
  index_.clear();
}

}  // namespace gpusonde::server
