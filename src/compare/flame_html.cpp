// SPDX-License-Identifier: Apache-2.0
#include "compare/flame_html.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/report/html/writer.h"
#include "analyze/report/quantities.h"
#include "base/html.h"
#include "model/short_names.h"

namespace gpusonde::compare {
namespace {

constexpr double kMinWidth = 1. / 400;
constexpr size_t kMaxRows = 64, kMaxFrames = 600;
constexpr size_t kMaxLabel = 60, kMaxTitle = 120;  // bytes
constexpr int kRowHeight = 18, kShadesOfFrames = 4;
// A change by this share has the strongest colour.
constexpr double kStrongest = 0.4;

double MeanOf(const StackNode& node) { return (node.a_ns + node.b_ns) / 2; }

std::string TimeOfFrame(double ns) { return analyze::Time(std::llround(ns)); }

// "+12.0 %", "only in B".
std::string ChangeOfFrame(const StackNode& node) {
  if (node.a_ns <= 0) return "only in B";
  if (node.b_ns <= 0) return "only in A";
  return analyze::Longer(node.b_ns / node.a_ns);
}

// "more3", "less1"; "" of a change that is too small for a colour.
std::string StyleOf(const StackNode& node) {
  const double larger = std::max(node.a_ns, node.b_ns);
  const double change = larger > 0 ? node.more_ns() / larger : 0;
  const long shade =
      std::min<long>(kShadesOfFrames, std::lround(std::abs(change) / kStrongest * kShadesOfFrames));
  return shade == 0 ? "" : fmt::format(" {}{}", change > 0 ? "more" : "less", shade);
}

// The names of the frames below a node that are wide enough to be drawn; `row` is theirs.
void AddNames(const StackNode& node, double whole_ns, size_t row, std::vector<std::string_view>& names) {
  if (row >= kMaxRows) return;
  for (const auto& [name, child] : node.children) {
    if (MeanOf(child) / whole_ns < kMinWidth) continue;
    names.push_back(name);
    AddNames(child, whole_ns, row + 1, names);
  }
}

std::vector<std::string_view> NamesBelow(const StackNode& node) {
  std::vector<std::string_view> names;
  AddNames(node, MeanOf(node), 1, names);
  return names;
}

class FlameWriter {
 public:
  // Names are distinguished from each other where they are cut.
  explicit FlameWriter(const StackNode& root)
      : whole_ns_(MeanOf(root)), labels_(NamesBelow(root), kMaxLabel), titles_(NamesBelow(root), kMaxTitle) {}

  void Add(const std::string& name, const StackNode& node, double left, size_t row) {
    const double width = MeanOf(node) / whole_ns_;
    if (width < kMinWidth || row >= kMaxRows || frames_ >= kMaxFrames) return;
    ++frames_;
    rows_ = std::max(rows_, row + 1);
    out_ += fmt::format(
        "<div class=\"frame{}\" style=\"left:{:.2f}%;width:{:.2f}%;top:{}px\" title=\"{}: {} instead of {}, "
        "{}\">"
        "{} {}</div>\n",
        StyleOf(node), left * 100, width * 100, static_cast<int>(row) * kRowHeight,
        EscapedHtml(titles_(name)), TimeOfFrame(node.b_ns), TimeOfFrame(node.a_ns), ChangeOfFrame(node),
        EscapedHtml(labels_(name)), ChangeOfFrame(node));
    for (const auto& [child_name, child] : node.children) {
      Add(child_name, child, left, row + 1);
      left += MeanOf(child) / whole_ns_;
    }
  }

  std::string Take() {
    return fmt::format("<div class=flame style=\"height:{}px\">\n{}</div>\n",
                       static_cast<int>(rows_) * kRowHeight, out_);
  }

 private:
  double whole_ns_;
  model::ShortNames labels_, titles_;
  size_t frames_ = 0, rows_ = 0;
  std::string out_;
};

}  // namespace

std::string FlameGraphStyle() {
  std::string style = R"css(<style>
:root { --more: #e8871e; --less: #4f94d4; }
@media screen and (prefers-color-scheme: dark) { :root { --more: #9c560c; --less: #2c6aa8; } }
.flame { position: relative; margin: 6px 0 12px; }
.frame { position: absolute; height: 17px; overflow: hidden; white-space: nowrap; padding: 0 3px;
  font-size: 11px; line-height: 17px; background: var(--raised); border-right: 1px solid var(--background);
  box-sizing: border-box; }
.swatch { display: inline-block; position: static; width: 26px; vertical-align: middle; }
)css";
  for (const std::string_view side : {"more", "less"})
    for (int shade = 1; shade <= kShadesOfFrames; ++shade)
      style += fmt::format(".{0}{1} {{ background: color-mix(in srgb, var(--{0}) {2}%, var(--raised)); }}\n",
                           side, shade, shade * 100 / kShadesOfFrames);
  return style + "</style>\n";
}

std::string FlameGraphOf(const StackDiff& diff) {
  const StackNode* node = &diff.root();
  if (MeanOf(*node) <= 0) return "";
  std::string name = "all";
  size_t common = 0;
  while (node->children.size() == 1 && !node->children.begin()->second.children.empty()) {
    ++common;
    name = node->children.begin()->first;
    node = &node->children.begin()->second;
  }
  FlameWriter writer(*node);
  writer.Add(common > 1 ? fmt::format("{} (below {} frames that all stacks have)", name, common - 1) : name,
             *node, 0, 0);
  return "<p class=dim><span class=\"frame swatch less4\"></span> less time in B &nbsp; "
         "<span class=\"frame swatch\"></span> about equal &nbsp; "
         "<span class=\"frame swatch more4\"></span> more time in B; full colour from 40 % on</p>\n" +
         writer.Take();
}

}  // namespace gpusonde::compare
