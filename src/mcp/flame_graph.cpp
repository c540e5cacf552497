// SPDX-License-Identifier: Apache-2.0
#include "mcp/flame_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

namespace gpusonde::mcp {
namespace {

using Json = nlohmann::ordered_json;

// The functions of a response (docs/api.md), by index.
class Functions {
 public:
  explicit Functions(const Json& body)
      : strings_(body.at("strings")),
        binaries_(body.at("binaries")),
        names_(body.at("functions").at("name").get<std::vector<size_t>>()),
        files_(body.at("functions").at("file").get<std::vector<size_t>>()),
        lines_(body.at("functions").at("line").get<std::vector<int64_t>>()),
        binary_of_(body.at("functions").at("binary").get<std::vector<int64_t>>()),
        kinds_(body.at("functions").at("kind").get<std::vector<std::string>>()),
        internal_(body.at("functions").at("internal").get<std::vector<int>>()) {}

  size_t size() const { return names_.size(); }
  const std::string& Kind(size_t index) const { return kinds_.at(index); }

  // "load_batch (data.py:41)", "inflate (libz.so.1)".
  std::string Describe(size_t index) const {
    std::string name = Text(names_.at(index));
    const std::string file = Text(files_.at(index));
    const std::string place = file.empty() ? Binary(index) : file.substr(file.rfind('/') + 1);
    if (place.empty()) return name;
    return !file.empty() && lines_.at(index) > 0 ? fmt::format("{} ({}:{})", name, place, lines_.at(index))
                                                 : fmt::format("{} ({})", name, place);
  }

  // Functions that are left out. The kernel's are where every wait ends; what remains says what for.
  bool IsLeftOut(size_t index, bool off_cpu) const {
    if (off_cpu && Kind(index) == "kernel" && !Text(names_.at(index)).starts_with('[')) return true;
    return internal_.at(index) != 0;
  }

 private:
  std::string Text(size_t index) const { return strings_.at(index).get<std::string>(); }
  std::string Binary(size_t index) const {
    const int64_t binary = binary_of_.at(index);
    return binary < 0 ? "" : binaries_.at(static_cast<size_t>(binary)).at("name").get<std::string>();
  }

  const Json& strings_;
  const Json& binaries_;
  std::vector<size_t> names_;
  std::vector<size_t> files_;
  std::vector<int64_t> lines_;
  std::vector<int64_t> binary_of_;
  std::vector<std::string> kinds_;
  std::vector<int> internal_;
};

// A call tree; node 0 is the root, and parents come before their children.
struct Tree {
  std::vector<size_t> function{0};
  std::vector<size_t> parent{0};
  std::vector<int64_t> self{0};

  size_t size() const { return self.size(); }
  std::vector<int64_t> Totals() const {
    std::vector<int64_t> totals = self;
    for (size_t node = size() - 1; node > 0; --node) totals[parent[node]] += totals[node];
    return totals;
  }
};

// Reads the nodes of a response. Functions that are left out are merged into their callers, as the UI does.
Tree ReadTree(const Json& nodes, const std::vector<bool>& left_out) {
  const auto function = nodes.at("function").get<std::vector<int64_t>>();
  const auto parent = nodes.at("parent").get<std::vector<size_t>>();
  const auto self = nodes.at("self").get<std::vector<int64_t>>();
  if (parent.size() != function.size() || self.size() != function.size())
    throw std::out_of_range("columns of different lengths");
  Tree tree;
  std::vector<size_t> merged_into(function.size());      // the node of `tree`
  std::map<std::pair<size_t, size_t>, size_t> children;  // by parent and function
  int64_t sum = 0;
  for (size_t node = 1; node < function.size(); ++node) {
    if (parent[node] >= node) throw std::out_of_range("a node before its parent");
    if (self[node] < 0 || self[node] > INT64_MAX - sum) throw std::out_of_range("times that can't be added");
    sum += self[node];
    const size_t above = merged_into[parent[node]];
    const auto what = static_cast<size_t>(function[node]);
    size_t here = above;
    if (!left_out.at(what)) {
      const auto [child, is_new] = children.try_emplace({above, what}, tree.size());
      here = child->second;
      if (is_new) {
        tree.function.push_back(what);
        tree.parent.push_back(above);
        tree.self.push_back(0);
      }
    }
    merged_into[node] = here;
    tree.self[here] += self[node];
  }
  return tree;
}

// The indices of the largest positive values from `first` on, largest first.
std::vector<size_t> Largest(const std::vector<int64_t>& values, size_t first, size_t limit, size_t& omitted) {
  std::vector<size_t> indices;
  for (size_t i = first; i < values.size(); ++i)
    if (values[i] > 0) indices.push_back(i);
  const size_t kept = std::min(limit, indices.size());
  std::ranges::partial_sort(indices, indices.begin() + static_cast<std::ptrdiff_t>(kept),
                            std::ranges::greater(), [&values](size_t i) { return values[i]; });
  omitted = indices.size() - kept;
  indices.resize(kept);
  return indices;
}

// In ten-thousandths, which is more than samples know.
double Share(int64_t part, int64_t whole) {
  return whole > 0 ? std::round(1e4 * static_cast<double>(part) / static_cast<double>(whole)) / 1e4 : 0;
}

// Time in each function itself, and with what it called; a recursive function counts once.
struct FunctionTimes {
  std::vector<int64_t> self;
  std::vector<int64_t> total;
};
FunctionTimes TimesByFunction(const Tree& tree, size_t functions) {
  FunctionTimes times{std::vector<int64_t>(functions), std::vector<int64_t>(functions)};
  const std::vector<int64_t> totals = tree.Totals();
  for (size_t node = 1; node < tree.size(); ++node) {
    const size_t function = tree.function[node];
    times.self[function] += tree.self[node];
    size_t caller = tree.parent[node];
    while (caller != 0 && tree.function[caller] != function) caller = tree.parent[caller];
    if (caller == 0) times.total[function] += totals[node];
  }
  return times;
}

// Outermost first.
Json StackOf(const Tree& tree, const Functions& functions, size_t node) {
  std::vector<std::string> frames;
  size_t depth = 0;
  for (; node != 0; node = tree.parent[node])
    if (++depth <= kMaxShownFrames) frames.push_back(functions.Describe(tree.function[node]));
  if (depth > kMaxShownFrames) frames.push_back(fmt::format("… {} more frames", depth - kMaxShownFrames));
  std::ranges::reverse(frames);
  return frames;
}

Json PathsOf(const Json& body, size_t limit) {
  const Functions functions(body);
  std::vector<bool> left_out;
  for (size_t function = 0; function < functions.size(); ++function)
    left_out.push_back(functions.IsLeftOut(function, body.at("type") == "off_cpu"));
  const Tree tree = ReadTree(body.at("nodes"), left_out);
  const FunctionTimes times = TimesByFunction(tree, functions.size());
  const auto whole = body.at("total").get<int64_t>();
  const auto describe = [&](size_t function) {
    return Json{{"name", functions.Describe(function)}, {"kind", functions.Kind(function)},
                {"self_ns", times.self[function]},      {"self_share", Share(times.self[function], whole)},
                {"total_ns", times.total[function]},    {"total_share", Share(times.total[function], whole)}};
  };
  size_t self_omitted = 0, total_omitted = 0, stacks_omitted = 0;
  Json by_self = Json::array(), by_total = Json::array(), stacks = Json::array();
  for (const size_t function : Largest(times.self, 0, limit, self_omitted))
    by_self.push_back(describe(function));
  for (const size_t function : Largest(times.total, 0, limit, total_omitted))
    by_total.push_back(describe(function));
  for (const size_t node : Largest(tree.self, 1, limit, stacks_omitted))
    stacks.push_back({{"self_ns", tree.self[node]},
                      {"share", Share(tree.self[node], whole)},
                      {"frames", StackOf(tree, functions, node)}});
  Json found = {{"unit", body.at("unit")}, {"total", whole}, {"samples", body.at("samples")}};
  found["one_second_in"] = body.value("one_second_in", 1);
  found["functions_by_self"] = std::move(by_self);
  found["functions_by_total"] = std::move(by_total);
  found["stacks"] = std::move(stacks);
  found["omitted"] = {
      {"functions_by_self", self_omitted}, {"functions_by_total", total_omitted}, {"stacks", stacks_omitted}};
  return found;
}

}  // namespace

Result<std::string> HottestPaths(std::string_view flame_graph, const Range& range, int64_t limit) {
  try {
    Json found = {{"range", Json::parse(range.bounds)}};
    found.update(PathsOf(Json::parse(flame_graph), static_cast<size_t>(limit)));
    return found.dump();
  } catch (const std::exception& error) {  // of JSON, and of columns that don't fit
    return Fail(ErrorCode::kInternal, fmt::format("the flame graph can't be read: {}", error.what()));
  }
}

std::vector<ResultField> PathResults() {
  return {{"range", "object", "from_us and to_us of the data described; null without data."},
          {"unit", "string", "Of total: ns."},
          {"total", "integer", "All time selected, the whole of every share."},
          {"samples", "integer", "Number of samples, waits or kernels; with few, the figures are imprecise."},
          {"one_second_in", "integer",
           "Above 1: only one second in so many was read, and all times are estimates."},
          {"functions_by_self", "array",
           "By time in the function itself; names with their file and first line, or binary. Python's "
           "interpreter, CUDA's libraries and the start of programs are part of their callers."},
          {"functions_by_total", "array", "By time in the function and what it called."},
          {"stacks", "array", "Whole stacks by the time in their last frame; frames outermost first."}};
}

}  // namespace gpusonde::mcp
