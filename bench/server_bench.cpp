// SPDX-License-Identifier: Apache-2.0
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "base/gzip.h"
#include "model/profile.h"
#include "server/api_json.h"
#include "server/flame_tree.h"

namespace gpusonde::server {
namespace {

constexpr int kDepth = 40;
constexpr int kFunctions = 20'000;
constexpr int kOwnFrames = 10;

// Stacks of kDepth frames that merge into about `nodes` nodes. Some branch off from an earlier stack with
// kOwnFrames frames of their own on average: shared near the root, separate near the leaf. The others differ
// by address only. In random order, as from a store.
model::Profile MakeProfile(int64_t stacks, int64_t nodes) {
  std::mt19937 random(1);
  model::Profile profile;
  for (int i = 0; i < 100; ++i) profile.binaries.push_back({fmt::format("lib{}.so", i), "/usr/lib", "ab12"});
  for (int i = 0; i < kFunctions; ++i) {
    profile.functions.push_back(
        {fmt::format("ns::Class{}::method_of_some_length_{}", i % 997, i), "", "a.cpp", i});
    profile.locations.push_back({model::FrameKind::kNative, i % 100, int64_t{i} * 16, {{i, i}}});
  }
  const int64_t distinct = nodes / kOwnFrames;
  profile.stacks.reserve(static_cast<size_t>(stacks));
  for (int64_t i = 0; i < stacks; ++i) {
    std::vector<int32_t> stack(kDepth);
    if (i > 0) stack = profile.stacks[random() % static_cast<uint64_t>(std::min(i, distinct))];
    // Leaf first: its own frames come first.
    size_t own = 1 + random() % (2 * kOwnFrames - 1);
    if (i == 0) own = kDepth;
    if (i >= distinct) own = 0;
    for (size_t frame = 0; frame < own; ++frame) stack[frame] = static_cast<int32_t>(random() % kFunctions);
    profile.stacks.push_back(std::move(stack));
  }
  std::ranges::shuffle(profile.stacks, random);
  for (int64_t i = 0; i < stacks; ++i)
    profile.samples.push_back(
        {static_cast<int32_t>(i), -1, 1, 1 + static_cast<int64_t>(random() % 100'000'000)});
  return profile;
}

// The newest profile, 160 MB, shared by all benchmarks of the same size.
const model::Profile& ProfileOf(int64_t stacks, int64_t nodes) {
  static model::Profile profile;
  static std::pair<int64_t, int64_t> made;
  if (made != std::pair(stacks, nodes)) profile = MakeProfile(stacks, nodes);
  made = {stacks, nodes};
  return profile;
}

void BuildTree(benchmark::State& state) {
  const model::Profile& profile = ProfileOf(state.range(0), state.range(1));
  size_t nodes = 0;
  for (auto _ : state) nodes = BuildFlameTree(profile).nodes.parent.size();
  state.counters["nodes"] = static_cast<double>(nodes);
  state.SetItemsProcessed(state.iterations() * state.range(0) * kDepth);
}

void WriteJson(benchmark::State& state) {
  const FlameTree tree = BuildFlameTree(ProfileOf(state.range(0), state.range(1)));
  size_t bytes = 0;
  for (auto _ : state) bytes = FlameTreeJson(tree).size();
  state.counters["nodes"] = static_cast<double>(tree.nodes.parent.size());
  state.counters["bytes"] = static_cast<double>(bytes);
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(bytes));
}

void Compress(benchmark::State& state) {
  const std::string json = FlameTreeJson(BuildFlameTree(ProfileOf(state.range(0), state.range(1))));
  const int level = static_cast<int>(state.range(2));
  size_t bytes = 0;
  for (auto _ : state) bytes = Gzip(json, level).size();
  state.counters["bytes"] = static_cast<double>(bytes);
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(json.size()));
}

// Stacks, nodes.
BENCHMARK(BuildTree)->Args({100'000, 200'000})->Args({1'000'000, 1'000'000})->Unit(benchmark::kMillisecond);
BENCHMARK(WriteJson)->Args({100'000, 200'000})->Args({1'000'000, 1'000'000})->Unit(benchmark::kMillisecond);
BENCHMARK(Compress)
    ->Args({1'000'000, 1'000'000, 1})
    ->Args({1'000'000, 1'000'000, 6})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace gpusonde::server
