// SPDX-License-Identifier: Apache-2.0
#include "mcp/flame_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

namespace gpusonde::mcp {
namespace {

using Json = nlohmann::ordered_json;

// The columns of a response (docs/api.md), nodes in pre-order.
struct Graph {
  explicit Graph(const Json& body)
      : strings(body.at("strings")),
        binaries(body.at("binaries")),
        names(body.at("functions").at("name").get<std::vector<size_t>>()),
        files(body.at("functions").at("file").get<std::vector<size_t>>()),
        lines(body.at("functions").at("line").get<std::vector<int64_t>>()),
        binary_of(body.at("functions").at("binary").get<std::vector<int64_t>>()),
        kinds(body.at("functions").at("kind")),
        function(body.at("nodes").at("function").get<std::vector<int64_t>>()),
        parent(body.at("nodes").at("parent").get<std::vector<int64_t>>()),
        self(body.at("nodes").at("self").get<std::vector<int64_t>>()),
        total(body.at("nodes").at("total").get<std::vector<int64_t>>()) {
    const size_t count = function.size();
    if (parent.size() != count || self.size() != count || total.size() != count)
      throw std::out_of_range("columns of different lengths");
    for (size_t node = 1; node < count; ++node)
      if (parent[node] < 0 || static_cast<size_t>(parent[node]) >= node || function[node] < 0 ||
          static_cast<size_t>(function[node]) >= names.size())
        throw std::out_of_range("a node without parent or function");
  }

  std::string Text(size_t index) const { return strings.at(index).get<std::string>(); }

  // "train.py:41 load_batch", "libz.so.1 inflate".
  std::string FrameName(int64_t index) const {
    const auto at = static_cast<size_t>(index);
    const std::string name = Text(names.at(at));
    const std::string file = Text(files.at(at));
    if (!file.empty()) {
      const std::string base = file.substr(file.rfind('/') + 1);
      return lines.at(at) > 0 ? fmt::format("{} ({}:{})", name, base, lines.at(at))
                              : fmt::format("{} ({})", name, base);
    }
    const int64_t binary = binary_of.at(at);
    if (binary < 0) return name;
    return fmt::format("{} ({})", name,
                       binaries.at(static_cast<size_t>(binary)).at("name").get<std::string>());
  }

  const Json& strings;
  const Json& binaries;
  std::vector<size_t> names;
  std::vector<size_t> files;
  std::vector<int64_t> lines;
  std::vector<int64_t> binary_of;
  const Json& kinds;
  std::vector<int64_t> function;
  std::vector<int64_t> parent;
  std::vector<int64_t> self;
  std::vector<int64_t> total;
};

// The indices of the largest positive values, largest first.
std::vector<size_t> Largest(const std::vector<int64_t>& values, size_t limit, size_t& omitted) {
  std::vector<size_t> indices;
  for (size_t i = 0; i < values.size(); ++i)
    if (values[i] > 0) indices.push_back(i);
  const size_t kept = std::min(limit, indices.size());
  std::ranges::partial_sort(indices, indices.begin() + static_cast<std::ptrdiff_t>(kept),
                            std::ranges::greater(), [&values](size_t i) { return values[i]; });
  omitted = indices.size() - kept;
  indices.resize(kept);
  return indices;
}

double Share(int64_t part, int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

// Time in each function itself, and with what it called; a recursive function counts once.
struct FunctionTimes {
  std::vector<int64_t> self;
  std::vector<int64_t> total;
};
FunctionTimes TimesByFunction(const Graph& graph) {
  FunctionTimes times{std::vector<int64_t>(graph.names.size()), std::vector<int64_t>(graph.names.size())};
  std::vector<size_t> path;                      // nodes from the root's child to the current one
  std::vector<int> on_path(graph.names.size());  // how often each function is on it
  for (size_t node = 1; node < graph.function.size(); ++node) {
    while (!path.empty() && static_cast<int64_t>(path.back()) != graph.parent[node]) {
      --on_path[static_cast<size_t>(graph.function[path.back()])];
      path.pop_back();
    }
    const auto function = static_cast<size_t>(graph.function[node]);
    times.self[function] += graph.self[node];
    if (on_path[function] == 0) times.total[function] += graph.total[node];
    ++on_path[function];
    path.push_back(node);
  }
  return times;
}

// Outermost first.
Json StackOf(const Graph& graph, size_t node) {
  std::vector<std::string> frames;
  size_t depth = 0;
  for (; node != 0; node = static_cast<size_t>(graph.parent[node]), ++depth)
    if (depth < kMaxShownFrames) frames.push_back(graph.FrameName(graph.function[node]));
  if (depth > kMaxShownFrames) frames.push_back(fmt::format("… {} more frames", depth - kMaxShownFrames));
  std::ranges::reverse(frames);
  return frames;
}

Json PathsOf(const Json& body, size_t limit) {
  const Graph graph(body);
  const auto whole = body.at("total").get<int64_t>();
  const FunctionTimes times = TimesByFunction(graph);
  size_t functions_omitted = 0, callers_omitted = 0, stacks_omitted = 0;
  Json functions = Json::array(), callers = Json::array(), stacks = Json::array();
  const auto describe = [&](size_t function) {
    return Json{{"name", graph.FrameName(static_cast<int64_t>(function))},
                {"kind", graph.kinds.at(function)},
                {"self_ns", times.self[function]},
                {"self_share", Share(times.self[function], whole)},
                {"total_ns", times.total[function]},
                {"total_share", Share(times.total[function], whole)}};
  };
  for (const size_t function : Largest(times.self, limit, functions_omitted))
    functions.push_back(describe(function));
  for (const size_t function : Largest(times.total, limit, callers_omitted))
    callers.push_back(describe(function));
  for (const size_t node : Largest(graph.self, limit, stacks_omitted))
    if (node != 0)
      stacks.push_back({{"self_ns", graph.self[node]},
                        {"share", Share(graph.self[node], whole)},
                        {"frames", StackOf(graph, node)}});
  Json found = {{"unit", body.at("unit")}, {"total", whole}, {"samples", body.at("samples")}};
  found["functions_by_self"] = std::move(functions);
  found["functions_by_total"] = std::move(callers);
  found["stacks"] = std::move(stacks);
  found["omitted"] = {{"functions_by_self", functions_omitted},
                      {"functions_by_total", callers_omitted},
                      {"stacks", stacks_omitted}};
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
          {"samples", "integer", "How many samples, waits or kernels it is measured by: few mean little."},
          {"functions_by_self", "array", "By time in the function itself; names with their file or binary."},
          {"functions_by_total", "array", "By time in the function and what it called."},
          {"stacks", "array", "Whole stacks by the time in their last frame; frames outermost first."}};
}

}  // namespace gpusonde::mcp
