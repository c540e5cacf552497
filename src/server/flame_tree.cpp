// SPDX-License-Identifier: Apache-2.0
#include "server/flame_tree.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <ranges>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/saturated.h"
#include "model/helper_threads.h"
#include "server/call_trie.h"
#include "server/frame_functions.h"
#include "server/internal_functions.h"
#include "server/total_variances.h"
#include "server/tree_roots.h"

namespace gpusonde::server {
namespace {

using model::Profile;

size_t Index(int32_t i) { return static_cast<size_t>(i); }

// The tree before sorting, nodes in order of insertion.
struct Unordered {
  CallTrie trie;
  std::vector<int64_t> self_ns;
  std::vector<int64_t> total_ns;
  std::vector<int32_t> ends;  // the node at the end of each sample's stack; -1: the sample isn't in the tree
};

// The frames that each sample's stack begins with; none without `roots`.
struct Roots {
  std::optional<TreeRoots> roots;
  std::vector<bool> is_hidden;  // by thread

  bool Hides(const Profile::Sample& sample) const {
    return sample.thread >= 0 && is_hidden[Index(sample.thread)];
  }
  // Which pair of root frames: samples of the same pair and stack are one path.
  int32_t PairOf(const Profile::Sample& sample) const {
    return roots.has_value() && sample.thread >= 0 ? roots->pair_of_thread[Index(sample.thread)] : -1;
  }
  std::span<const int32_t> Frames(int32_t pair) const {
    return pair < 0 ? std::span<const int32_t>() : std::span(roots->pairs[Index(pair)]);
  }
};

// The samples of the tree, sorted so that samples of the same path are adjacent.
std::vector<int32_t> OrderByPath(const Profile& profile, const Roots& roots) {
  std::vector<std::pair<uint64_t, int32_t>> keyed;  // (pair, stack), sample
  keyed.reserve(profile.samples.size());
  for (size_t i = 0; i < profile.samples.size(); ++i) {
    const Profile::Sample& sample = profile.samples[i];
    if (roots.Hides(sample)) continue;
    const uint64_t key =
        uint64_t{static_cast<uint32_t>(roots.PairOf(sample))} << 32 | static_cast<uint32_t>(sample.stack);
    keyed.emplace_back(key, static_cast<int32_t>(i));
  }
  std::ranges::sort(keyed);
  std::vector<int32_t> order;
  order.reserve(keyed.size());
  for (const auto& [key, sample] : keyed) order.push_back(sample);
  return order;
}

// Inserts paths into the trie, one block at a time.
class PathBlock {
 public:
  explicit PathBlock(Unordered& tree) : tree_(tree) {}

  // Adds `roots`, then the path of a stack (leaf first), and the time of `samples` in it.
  void Add(const FrameFunctions& functions, std::span<const int32_t> roots, std::span<const int32_t> stack,
           std::span<const int32_t> samples, int64_t weight_ns) {
    const size_t begin = frames_.size();
    frames_.insert(frames_.end(), roots.begin(), roots.end());
    for (const int32_t location : stack | std::views::reverse) {
      const auto frames = functions.At(location);
      frames_.insert(frames_.end(), frames.begin(), frames.end());
    }
    if (stack.empty()) frames_.push_back(functions.At(-1).front());
    lengths_.push_back(frames_.size() - begin);
    samples_.push_back(samples);
    weights_ns_.push_back(weight_ns);
    if (lengths_.size() == CallTrie::kBlock) Flush();
  }

  void Flush() {
    std::array<std::span<const int32_t>, CallTrie::kBlock> paths;
    std::array<int32_t, CallTrie::kBlock> ends;
    const size_t count = lengths_.size();
    for (size_t i = 0, begin = 0; i < count; begin += lengths_[i++])
      paths[i] = std::span(frames_).subspan(begin, lengths_[i]);
    tree_.trie.Insert(std::span(paths).first(count), std::span(ends).first(count));
    tree_.self_ns.resize(tree_.trie.size());
    for (size_t i = 0; i < count; ++i) {
      int64_t& self = tree_.self_ns[Index(ends[i])];
      self = AddSaturated(self, weights_ns_[i]);
      for (const int32_t sample : samples_[i]) tree_.ends[Index(sample)] = ends[i];
    }
    frames_.clear();
    samples_.clear();
    lengths_.clear();
    weights_ns_.clear();
  }

 private:
  Unordered& tree_;
  std::vector<int32_t> frames_;  // of all paths, one after the other
  std::vector<size_t> lengths_;
  std::vector<std::span<const int32_t>> samples_;
  std::vector<int64_t> weights_ns_;
};

Unordered Merge(const Profile& profile, const FrameFunctions& functions, const Roots& roots) {
  Unordered tree;
  tree.ends.resize(profile.samples.size(), -1);
  const std::vector<int32_t> order = OrderByPath(profile, roots);
  PathBlock block(tree);
  for (size_t first = 0, next = 0; first < order.size(); first = next) {
    const Profile::Sample& sample = profile.samples[Index(order[first])];
    const int32_t pair = roots.PairOf(sample);
    int64_t weight_ns = 0;
    for (; next < order.size(); ++next) {
      const Profile::Sample& same = profile.samples[Index(order[next])];
      if (same.stack != sample.stack || roots.PairOf(same) != pair) break;
      weight_ns = AddSaturated(weight_ns, std::max<int64_t>(same.weight_ns, 0));
    }
    const auto stack =
        sample.stack < 0 ? std::span<const int32_t>() : std::span(profile.stacks[Index(sample.stack)]);
    block.Add(functions, roots.Frames(pair), stack, std::span(order).subspan(first, next - first), weight_ns);
  }
  block.Flush();

  // Children come after their parents.
  tree.total_ns = tree.self_ns;
  for (size_t node = tree.trie.size(); --node > 0;) {
    int64_t& parent = tree.total_ns[Index(tree.trie.parent()[node])];
    parent = AddSaturated(parent, tree.total_ns[node]);
  }
  return tree;
}

// The children of every node, ordered as they are shown.
class Children {
 public:
  explicit Children(const Unordered& tree) : first_(tree.trie.size() + 1), children_(tree.trie.size() - 1) {
    const std::vector<int32_t>& parent = tree.trie.parent();
    for (size_t node = 1; node < parent.size(); ++node) ++first_[Index(parent[node]) + 1];
    std::partial_sum(first_.begin(), first_.end(), first_.begin());
    std::vector<size_t> next(first_.begin(), first_.end() - 1);
    for (size_t node = 1; node < parent.size(); ++node)
      children_[next[Index(parent[node])]++] = static_cast<int32_t>(node);

    const auto before = [&tree](int32_t a, int32_t b) {
      if (tree.total_ns[Index(a)] != tree.total_ns[Index(b)])
        return tree.total_ns[Index(a)] > tree.total_ns[Index(b)];
      return tree.trie.function()[Index(a)] < tree.trie.function()[Index(b)];
    };
    for (size_t node = 0; node + 1 < first_.size(); ++node)
      if (first_[node + 1] - first_[node] > 1)
        std::sort(children_.begin() + static_cast<ptrdiff_t>(first_[node]),
                  children_.begin() + static_cast<ptrdiff_t>(first_[node + 1]), before);
  }

  std::span<const int32_t> Of(int32_t node) const {
    const size_t first = first_[Index(node)];
    return std::span(children_).subspan(first, first_[Index(node) + 1] - first);
  }

 private:
  std::vector<size_t> first_;
  std::vector<int32_t> children_;
};

// `variances_ns2` of the nodes' totals; empty: totals are not estimated.
void WriteNodes(const Unordered& tree, std::span<const double> variances_ns2, int64_t min_total_ns,
                FlameTree& out) {
  struct Pending {
    int32_t node;
    int32_t parent;  // in `out`
  };
  const Children children(tree);
  std::vector<Pending> pending{{0, -1}};
  while (!pending.empty()) {
    const auto [node, parent] = pending.back();
    pending.pop_back();
    const int32_t written = static_cast<int32_t>(out.nodes.parent.size());
    out.nodes.function.push_back(tree.trie.function()[Index(node)]);
    out.nodes.parent.push_back(parent);
    out.nodes.self_ns.push_back(tree.self_ns[Index(node)]);
    out.nodes.total_ns.push_back(tree.total_ns[Index(node)]);
    if (!variances_ns2.empty())
      out.nodes.interval_ns.push_back(model::IntervalNs(variances_ns2[Index(node)]));
    for (const int32_t child : children.Of(node) | std::views::reverse) {
      if (tree.total_ns[Index(child)] >= min_total_ns)
        pending.push_back({child, written});
      else
        out.omitted.total_ns = AddSaturated(out.omitted.total_ns, tree.total_ns[Index(child)]);
    }
  }
  out.omitted.nodes = static_cast<int64_t>(tree.trie.size() - out.nodes.parent.size());
}

// The new index of each used entry of a table, in the same order; -1 for unused ones.
std::vector<int32_t> Renumber(const std::vector<bool>& used) {
  std::vector<int32_t> numbers(used.size(), -1);
  int32_t next = 0;
  for (size_t i = 0; i < used.size(); ++i)
    if (used[i]) numbers[i] = next++;
  return numbers;
}

// Interns texts; number 0 is the empty text.
class StringTable {
 public:
  explicit StringTable(std::vector<std::string>& strings) : strings_(strings) { Add(""); }
  // `text` must outlive the table.
  int32_t Add(std::string_view text) {
    const auto [entry, is_new] = index_.try_emplace(text, static_cast<int32_t>(strings_.size()));
    if (is_new) strings_.emplace_back(text);
    return entry->second;
  }

 private:
  std::vector<std::string>& strings_;
  std::unordered_map<std::string_view, int32_t> index_;
};

// Writes the functions and binaries that nodes use, and no others. Those of `roots` are numbered after those
// of `from`.
void WriteFunctions(const FrameFunctions& from, std::span<const TreeRoots::Function> roots, FlameTree& out) {
  const size_t count = from.functions().size();
  std::vector<bool> is_used(count + roots.size());
  std::vector<bool> is_binary_used(from.binaries().size());
  for (const int32_t function : out.nodes.function) {
    if (function < 0) continue;
    is_used[Index(function)] = true;
    if (Index(function) >= count) continue;
    const int32_t binary = from.functions()[Index(function)].binary;
    if (binary >= 0) is_binary_used[Index(binary)] = true;
  }
  const std::vector<int32_t> function_at = Renumber(is_used);
  const std::vector<int32_t> binary_at = Renumber(is_binary_used);

  const std::vector<bool> is_internal = InternalFunctions(from, out.nodes.function, out.nodes.parent);
  StringTable strings(out.strings);
  for (size_t i = 0; i < is_used.size(); ++i) {
    if (!is_used[i]) continue;
    const FrameFunctions::Function function =
        i < count ? from.functions()[i] : FrameFunctions::Function{.name = roots[i - count].name};
    out.functions.name.push_back(strings.Add(function.name));
    out.functions.binary.push_back(function.binary < 0 ? -1 : binary_at[Index(function.binary)]);
    out.functions.kind.push_back(i < count ? model::EnumNames<model::FrameKind>::Name(function.kind)
                                           : roots[i - count].kind);
    out.functions.file.push_back(strings.Add(function.file));
    out.functions.line.push_back(function.line);
    out.functions.internal.push_back(i < count && is_internal[i] ? 1 : 0);
  }
  for (size_t i = 0; i < is_binary_used.size(); ++i)
    if (is_binary_used[i]) out.binaries.push_back(from.binaries()[i]);
  for (int32_t& function : out.nodes.function)
    if (function >= 0) function = function_at[Index(function)];
}

}  // namespace

FlameTree BuildFlameTree(const Profile& profile, const FlameTreeOptions& options) {
  FlameTree out;
  const FrameFunctions functions(profile);
  Roots roots{.is_hidden = options.helper_threads ? std::vector<bool>(profile.threads.size())
                                                  : model::HelperThreads(profile)};
  out.type = profile.type;
  out.hidden.threads = std::ranges::count(roots.is_hidden, true);
  for (const Profile::Sample& sample : profile.samples) {
    if (roots.Hides(sample))
      out.hidden.total_ns = AddSaturated(out.hidden.total_ns, std::max<int64_t>(sample.weight_ns, 0));
    else
      out.samples = AddSaturated(out.samples, std::max<int64_t>(sample.count, 0));
  }
  if (options.roots) roots.roots = RootsOf(profile, static_cast<int32_t>(functions.functions().size()));
  const Unordered tree = Merge(profile, functions, roots);
  std::vector<double> variances_ns2;
  out.one_second_in = profile.one_second_in;
  if (profile.type != model::ProfileType::kCpu || profile.one_second_in > 1)
    variances_ns2 = TotalVariances(profile, tree.trie.parent(), tree.ends);
  WriteNodes(tree, variances_ns2, options.min_total_ns, out);
  WriteFunctions(functions, options.roots ? roots.roots->functions : std::vector<TreeRoots::Function>(), out);
  return out;
}

}  // namespace gpusonde::server
