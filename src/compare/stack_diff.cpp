// SPDX-License-Identifier: Apache-2.0
#include "compare/stack_diff.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <string_view>
#include <utility>

#include "base/ascii.h"

namespace gpusonde::compare {
namespace {

// PyTorch's operators: a namespace, and a name without arguments.
bool IsOperatorName(std::string_view name) {
  const size_t colons = name.find("::");
  if (colons == 0 || colons == std::string_view::npos) return false;
  const auto is_word = [](char c) { return IsLetterOrDigit(c) || c == '_' || c == '.'; };
  return std::ranges::all_of(name.substr(0, colons), is_word) && colons + 2 < name.size() &&
         std::ranges::all_of(name.substr(colons + 2), is_word);
}

bool IsLaunchCall(std::string_view name) {
  return name.starts_with("cuda") || name.starts_with("hip") || name.starts_with("cuLaunch") ||
         name.starts_with("cuMem");
}

// The layers of a model that have one class are joined: "nn.Module: Block_7" is "nn.Module: Block".
std::string WithoutNumber(std::string name) {
  if (!name.starts_with("nn.Module: ")) return name;
  const size_t end = name.find_last_not_of("0123456789");
  if (end + 1 < name.size() && name[end] == '_') name.resize(end);
  return name;
}

// Each frame is a level of recursion for what walks the tree and for its destructor, and a recording has
// stacks of any depth.
constexpr std::ptrdiff_t kMaxEndFrames = 512;

// The outermost first. Of a stack that is deeper than twice kMaxEndFrames the ends.
std::vector<std::string> FramesOf(const model::Profile& profile, const std::vector<int32_t>& stack) {
  std::vector<std::string> frames;
  for (auto location = stack.rbegin(); location != stack.rend(); ++location) {
    const size_t lines = *location < 0 ? 0 : profile.locations[static_cast<size_t>(*location)].lines.size();
    if (lines == 0) frames.push_back(WithoutNumber(model::FrameName(profile, *location)));
    for (size_t i = lines; i > 0; --i)
      frames.push_back(WithoutNumber(model::FrameName(profile, *location, i - 1)));
  }
  if (std::ssize(frames) > 2 * kMaxEndFrames) {
    const auto middle = frames.begin() + kMaxEndFrames;
    *middle = "[frames left out]";
    frames.erase(middle + 1, frames.end() - kMaxEndFrames);
  }
  return frames;
}

// Whether both sides ran kernels here, but of other names.
bool HasOtherKernels(const StackNode& node) {
  return node.a_ns > 0 && node.b_ns > 0 && !node.children.empty() &&
         std::ranges::all_of(node.children, [](const auto& named) {
           const StackNode& child = named.second;
           return child.children.empty() && (child.a_ns <= 0 || child.b_ns <= 0);
         });
}

// Adds what stacks that end here differ by.
void CollectChanges(const StackNode& node, std::vector<std::string>& frames,
                    std::vector<StackLine>& changes) {
  StackLine self{.frames = frames, .a_ns = node.a_ns, .b_ns = node.b_ns};
  const bool is_leaf = HasOtherKernels(node);
  for (const auto& [name, child] : node.children) {
    if (is_leaf) break;
    self.a_ns -= child.a_ns;
    self.b_ns -= child.b_ns;
    frames.push_back(name);
    CollectChanges(child, frames, changes);
    frames.pop_back();
  }
  // Sums of differences leave parts of nanoseconds.
  if (std::abs(self.more_ns()) >= 1) changes.push_back(std::move(self));
}

void SortByChange(std::vector<StackLine>& lines) {
  std::ranges::stable_sort(lines, std::greater<>(),
                           [](const StackLine& line) { return std::abs(line.more_ns()); });
}

}  // namespace

void StackDiff::Add(const model::Profile& profile, bool is_b, double divisor) {
  for (const model::Profile::Sample& sample : profile.samples) {
    if (sample.stack < 0) continue;
    std::vector<std::string> frames = FramesOf(profile, profile.stacks[static_cast<size_t>(sample.stack)]);
    if (type_ == model::ProfileType::kGpu && frames.size() > 1 && IsLaunchCall(frames[frames.size() - 2]))
      frames.erase(frames.end() - 2);
    const double time_ns = static_cast<double>(sample.weight_ns) / divisor;
    const auto add = [&](auto& to) { (is_b ? to.b_ns : to.a_ns) += time_ns; };
    StackNode* node = &root_;
    add(*node);
    for (const std::string& frame : frames) {
      node = &node->children[frame];
      add(*node);
    }
    if (type_ != model::ProfileType::kGpu || frames.empty()) continue;
    const auto innermost = std::find_if(frames.rbegin() + 1, frames.rend(), IsOperatorName);
    if (innermost == frames.rend()) continue;
    StackLine& line = operators_[*innermost];
    line.frames = {*innermost};
    add(line);
  }
}

std::vector<StackLine> StackDiff::Operators() const {
  std::vector<StackLine> operators;
  for (const auto& [name, line] : operators_) operators.push_back(line);
  SortByChange(operators);
  return operators;
}

std::vector<StackLine> StackDiff::Changes(size_t most) const {
  std::vector<StackLine> changes, chosen;
  std::vector<std::string> frames;
  CollectChanges(root_, frames, changes);
  SortByChange(changes);
  size_t grown = 0, shrunk = 0;
  for (StackLine& change : changes) {
    size_t& count = change.more_ns() > 0 ? grown : shrunk;
    if (count == most) continue;
    ++count;
    chosen.push_back(std::move(change));
  }
  return chosen;
}

}  // namespace gpusonde::compare
