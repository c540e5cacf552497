// SPDX-License-Identifier: Apache-2.0
#include "compare/stack_json.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace gpusonde::compare {
namespace {

// Deeper frames are counted with those that are too small: no screen has so many rows, and a recursion of the
// program must not become one of ours.
constexpr int kMaxDepth = 512;

double SizeOf(const StackNode& node) { return node.a_ns + node.b_ns; }

void CollectSizes(const StackNode& node, int depth, std::vector<double>& sizes) {
  sizes.push_back(SizeOf(node));
  if (depth == kMaxDepth) return;
  for (const auto& [name, child] : node.children) CollectSizes(child, depth + 1, sizes);
}

int64_t CountFrames(const StackNode& root) {
  int64_t count = 0;
  std::vector<const StackNode*> open = {&root};
  while (!open.empty()) {
    const StackNode* node = open.back();
    open.pop_back();
    ++count;
    for (const auto& [name, child] : node->children) open.push_back(&child);
  }
  return count;
}

class ColumnsOfStacks {
 public:
  explicit ColumnsOfStacks(double least) : least_(least) {}

  void Add(std::string_view name, const StackNode& node, int32_t parent, int depth) {
    const auto [known, is_new] = numbers_.try_emplace(name, static_cast<int32_t>(strings_.size()));
    if (is_new) strings_.push_back(name);
    const auto self = static_cast<int32_t>(names_.size());
    names_.push_back(known->second);
    parents_.push_back(parent);
    a_.push_back(std::llround(node.a_ns));
    b_.push_back(std::llround(node.b_ns));
    if (depth == kMaxDepth) return;
    for (const auto& [child_name, child] : node.children)
      if (SizeOf(child) > least_) Add(child_name, child, self, depth + 1);
  }

  void Write(JsonWriter& json, int64_t all) const {
    json.BeginObject().Key("strings").BeginArray();
    for (const std::string_view name : strings_) json.Value(name);
    json.EndArray().Key("nodes").BeginObject();
    json.Column("name", names_).Column("parent", parents_).Column("a_ns", a_).Column("b_ns", b_);
    json.EndObject().Field("omitted", all - static_cast<int64_t>(names_.size())).EndObject();
  }

 private:
  double least_;
  std::map<std::string_view, int32_t> numbers_;
  std::vector<std::string_view> strings_;
  std::vector<int32_t> names_, parents_;
  std::vector<int64_t> a_, b_;
};

}  // namespace

void WriteStacks(JsonWriter& json, const StackDiff& diff, size_t most) {
  std::vector<double> sizes;
  CollectSizes(diff.root(), 0, sizes);
  // No frame is larger than the one that called it, so that what is left is a tree.
  double least = -std::numeric_limits<double>::infinity();
  if (sizes.size() > most) {
    const auto place = sizes.begin() + static_cast<std::ptrdiff_t>(most);
    std::ranges::nth_element(sizes, place, std::greater<>());
    least = *place;
  }
  ColumnsOfStacks columns(least);
  columns.Add("all", diff.root(), -1, 0);
  columns.Write(json, CountFrames(diff.root()));
}

}  // namespace gpusonde::compare
