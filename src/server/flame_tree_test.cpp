// SPDX-License-Identifier: Apache-2.0
#include "server/flame_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <tuple>

namespace gpusonde::server {
namespace {

using model::FrameKind;
using model::Profile;
using testing::ElementsAre;

// Makes profiles of native functions by name.
class ProfileBuilder {
 public:
  int32_t Binary(const std::string& name) {
    profile.binaries.push_back({name, "/usr/lib/" + name, "ab12"});
    return static_cast<int32_t>(profile.binaries.size()) - 1;
  }
  int32_t Function(const std::string& name, const std::string& file = "", int32_t line = 0) {
    profile.functions.push_back({name, name, file, line});
    return static_cast<int32_t>(profile.functions.size()) - 1;
  }
  // `functions`: innermost first.
  int32_t Location(const std::vector<int32_t>& functions, int32_t binary = -1,
                   FrameKind kind = FrameKind::kNative) {
    Profile::Location location{kind, binary, static_cast<int64_t>(profile.locations.size()) * 16, {}};
    for (const int32_t function : functions) location.lines.push_back({function, 1});
    profile.locations.push_back(location);
    return static_cast<int32_t>(profile.locations.size()) - 1;
  }
  int32_t LocationOf(const std::string& function) { return Location({Function(function)}); }
  // `stack`: leaf first.
  void Sample(const std::vector<int32_t>& stack, int64_t weight_ns, int64_t count = 1) {
    profile.stacks.push_back(stack);
    profile.samples.push_back({static_cast<int32_t>(profile.stacks.size()) - 1, -1, count, weight_ns});
  }

  Profile profile;
};

std::string NameOf(const FlameTree& tree, size_t node) {
  const int32_t function = tree.nodes.function[node];
  if (function < 0) return "";
  return tree.strings[static_cast<size_t>(tree.functions.name[static_cast<size_t>(function)])];
}

std::vector<std::string> Names(const FlameTree& tree) {
  std::vector<std::string> names;
  for (size_t node = 0; node < tree.nodes.function.size(); ++node) names.push_back(NameOf(tree, node));
  return names;
}

TEST(FlameTree, AnEmptyProfileIsARootAlone) {
  const FlameTree tree = BuildFlameTree({});
  EXPECT_THAT(tree.nodes.function, ElementsAre(-1));
  EXPECT_THAT(tree.nodes.parent, ElementsAre(-1));
  EXPECT_THAT(tree.nodes.total_ns, ElementsAre(0));
  EXPECT_THAT(tree.strings, ElementsAre(""));
  EXPECT_TRUE(tree.functions.name.empty());
}

TEST(FlameTree, StacksMergeFromTheRootAndSiblingsFallByTotalThenName) {
  ProfileBuilder build;
  const int32_t main = build.LocationOf("main");
  const int32_t small = build.LocationOf("a_small");
  const int32_t big = build.LocationOf("z_big");
  const int32_t same = build.LocationOf("b_small");
  build.Sample({small, main}, 10, 1);
  build.Sample({same, main}, 10, 1);
  build.Sample({big, main}, 70, 7);
  build.Sample({main}, 5, 2);
  const FlameTree tree = BuildFlameTree(build.profile);
  EXPECT_THAT(Names(tree), ElementsAre("", "main", "z_big", "a_small", "b_small"));
  EXPECT_THAT(tree.nodes.parent, ElementsAre(-1, 0, 1, 1, 1));
  EXPECT_THAT(tree.nodes.self_ns, ElementsAre(0, 5, 70, 10, 10));
  EXPECT_THAT(tree.nodes.total_ns, ElementsAre(95, 95, 70, 10, 10));
  EXPECT_EQ(tree.samples, 11);
}

TEST(FlameTree, InlinedFunctionsAreFramesInsideTheirCaller) {
  ProfileBuilder build;
  const int32_t inner = build.Function("inlined");
  const int32_t outer = build.Function("caller");
  build.Sample({build.Location({inner, outer}), build.LocationOf("main")}, 3);
  EXPECT_THAT(Names(BuildFlameTree(build.profile)), ElementsAre("", "main", "caller", "inlined"));
}

TEST(FlameTree, OneFunctionAtManyAddressesIsOneNode) {
  ProfileBuilder build;
  const int32_t libc = build.Binary("libc.so.6");
  const int32_t malloc = build.Function("malloc");
  build.Sample({build.Location({malloc}, libc)}, 1);
  build.Sample({build.Location({malloc}, libc)}, 2);
  const FlameTree tree = BuildFlameTree(build.profile);
  EXPECT_THAT(Names(tree), ElementsAre("", "malloc"));
  EXPECT_THAT(tree.nodes.self_ns, ElementsAre(0, 3));
  EXPECT_THAT(tree.functions.binary, ElementsAre(0));
  ASSERT_EQ(tree.binaries.size(), 1u);
  EXPECT_EQ(tree.binaries[0].path, "/usr/lib/libc.so.6");
}

TEST(FlameTree, TheSameNameInTwoBinariesIsTwoNodes) {
  ProfileBuilder build;
  const int32_t init = build.Function("init");
  build.Sample({build.Location({init}, build.Binary("libz.so"))}, 1);
  build.Sample({build.Location({init}, build.Binary("liba.so"))}, 1);
  const FlameTree tree = BuildFlameTree(build.profile);
  EXPECT_THAT(Names(tree), ElementsAre("", "init", "init"));
  EXPECT_EQ(tree.binaries[static_cast<size_t>(tree.functions.binary[0])].name, "liba.so");
}

TEST(FlameTree, PythonFunctionsOfTwoFilesAreTwoNodes) {
  ProfileBuilder build;
  build.Sample({build.Location({build.Function("main", "b.py", 3)}, -1, FrameKind::kPython)}, 1);
  build.Sample({build.Location({build.Function("main", "a.py", 9)}, -1, FrameKind::kPython)}, 1);
  const FlameTree tree = BuildFlameTree(build.profile);
  EXPECT_THAT(Names(tree), ElementsAre("", "main", "main"));
  EXPECT_EQ(tree.strings[static_cast<size_t>(tree.functions.file[0])], "a.py");
  EXPECT_THAT(tree.functions.line, ElementsAre(9, 3));
  EXPECT_THAT(tree.functions.kind, ElementsAre("python", "python"));
}

TEST(FlameTree, AMergedFunctionKeepsTheKnownFile) {
  ProfileBuilder build;
  const int32_t binary = build.Binary("train");
  build.Sample({build.Location({build.Function("step")}, binary)}, 1);
  build.Sample({build.Location({build.Function("step", "step.cpp", 40)}, binary)}, 1);
  const FlameTree tree = BuildFlameTree(build.profile);
  ASSERT_EQ(tree.functions.file.size(), 1u);
  EXPECT_EQ(tree.strings[static_cast<size_t>(tree.functions.file[0])], "step.cpp");
  EXPECT_THAT(tree.functions.line, ElementsAre(40));
}

TEST(FlameTree, FramesWithoutASymbolAreNamedByModuleAndOffset) {
  ProfileBuilder build;
  const int32_t binary = build.Binary("libcuda.so.1");
  build.profile.locations.push_back({FrameKind::kNative, binary, 0x1234, {}});
  build.Sample({0, -1}, 4);
  build.Sample({}, 2);
  build.profile.samples.push_back({-1, -1, 1, 1});
  const FlameTree tree = BuildFlameTree(build.profile);
  EXPECT_THAT(Names(tree), ElementsAre("", "[unknown]", "[libcuda.so.1+0x1234]"));
  EXPECT_THAT(tree.nodes.self_ns, ElementsAre(0, 3, 4));
  EXPECT_THAT(tree.functions.binary, ElementsAre(0, -1));
}

TEST(FlameTree, NodesBelowMinTotalAreLeftOutAndCounted) {
  ProfileBuilder build;
  const int32_t main = build.LocationOf("main");
  const int32_t rare = build.LocationOf("rare");
  build.Sample({build.LocationOf("often"), main}, 90);
  build.Sample({build.LocationOf("below_rare"), rare, main}, 4);
  build.Sample({rare, main}, 5);
  build.Sample({build.LocationOf("other"), main}, 1);
  const FlameTree all = BuildFlameTree(build.profile, {.min_total_ns = 1});
  EXPECT_EQ(all.omitted.nodes, 0);
  const FlameTree tree = BuildFlameTree(build.profile, {.min_total_ns = 10});
  EXPECT_THAT(Names(tree), ElementsAre("", "main", "often"));
  EXPECT_THAT(tree.nodes.total_ns, ElementsAre(100, 100, 90));
  EXPECT_THAT(tree.nodes.self_ns, ElementsAre(0, 0, 90));
  EXPECT_EQ(tree.omitted.nodes, 3);
  EXPECT_EQ(tree.omitted.total_ns, 10);
  EXPECT_THAT(tree.strings, ElementsAre("", "main", "often"));
}

TEST(FlameTree, AStackOf100000FramesIsAPath) {
  ProfileBuilder build;
  const std::vector<int32_t> stack(100'000, build.LocationOf("recurse"));
  build.Sample(stack, 7);
  const FlameTree tree = BuildFlameTree(build.profile);
  ASSERT_EQ(tree.nodes.parent.size(), 100'001u);
  EXPECT_EQ(tree.nodes.parent.back(), 99'999);
  EXPECT_EQ(tree.nodes.total_ns.front(), 7);
  EXPECT_EQ(tree.nodes.self_ns.back(), 7);
}

TEST(FlameTree, AbsurdWeightsNeitherOverflowNorGoBelowZero) {
  ProfileBuilder build;
  const int64_t most = std::numeric_limits<int64_t>::max();
  build.Sample({build.LocationOf("a")}, most, most);
  build.Sample({build.LocationOf("b")}, most, most);
  build.Sample({build.LocationOf("c")}, std::numeric_limits<int64_t>::min(), -1);
  const FlameTree tree = BuildFlameTree(build.profile);
  EXPECT_THAT(tree.nodes.total_ns, ElementsAre(most, most, most, 0));
  EXPECT_EQ(tree.samples, most);
}

// The same tree, built naively.
struct NaiveNode {
  std::map<std::tuple<std::string, std::string>, NaiveNode> children;  // by function and binary name
  int64_t self_ns = 0;
  int64_t total_ns = 0;
};

NaiveNode NaiveTree(const Profile& profile) {
  NaiveNode root;
  for (const Profile::Sample& sample : profile.samples) {
    NaiveNode* node = &root;
    node->total_ns += sample.weight_ns;
    const std::vector<int32_t>& stack = profile.stacks[static_cast<size_t>(sample.stack)];
    for (size_t depth = stack.size(); depth-- > 0;) {
      const Profile::Location& location = profile.locations[static_cast<size_t>(stack[depth])];
      const std::string binary =
          location.binary < 0 ? "" : profile.binaries[static_cast<size_t>(location.binary)].name;
      for (size_t line = std::max<size_t>(location.lines.size(), 1); line-- > 0;) {
        node = &node->children[{model::FrameName(profile, stack[depth], line), binary}];
        node->total_ns += sample.weight_ns;
      }
    }
    node->self_ns += sample.weight_ns;
  }
  return root;
}

// Compares the subtree at `next` and advances `next` past it.
void ExpectSame(const FlameTree& tree, const NaiveNode& naive, int64_t min_total_ns, size_t& next) {
  const size_t node = next++;
  ASSERT_LT(node, tree.nodes.parent.size());
  EXPECT_EQ(tree.nodes.self_ns[node], naive.self_ns);
  EXPECT_EQ(tree.nodes.total_ns[node], naive.total_ns);
  std::vector<std::pair<std::tuple<std::string, std::string>, const NaiveNode*>> children;
  for (const auto& [key, child] : naive.children)
    if (child.total_ns >= min_total_ns) children.emplace_back(key, &child);
  std::ranges::stable_sort(children, std::greater(),
                           [](const auto& child) { return child.second->total_ns; });
  for (const auto& [key, child] : children) {
    ASSERT_LT(next, tree.nodes.parent.size());
    EXPECT_EQ(tree.nodes.parent[next], static_cast<int32_t>(node));
    EXPECT_EQ(NameOf(tree, next), std::get<0>(key));
    ASSERT_NO_FATAL_FAILURE(ExpectSame(tree, *child, min_total_ns, next));
  }
}

Profile RandomProfile(std::mt19937& random) {
  const auto below = [&random](int32_t n) {
    return static_cast<int32_t>(random() % static_cast<uint32_t>(n));
  };
  ProfileBuilder build;
  for (int i = 0; i < 3; ++i) build.Binary("lib" + std::to_string(i));
  for (int i = 0; i < 8; ++i) build.Function("f" + std::to_string(i % 6));
  for (int i = 0; i < 20; ++i) {
    std::vector<int32_t> functions;
    for (int inlined = below(3); inlined > 0; --inlined) functions.push_back(below(8));
    build.Location(functions, below(4) - 1);
  }
  for (int i = below(60); i > 0; --i) {
    std::vector<int32_t> stack;
    for (int depth = 1 + below(6); depth > 0; --depth) stack.push_back(below(20));
    build.Sample(stack, below(5));
  }
  // Several threads in one stack.
  for (size_t i = build.profile.samples.size() / 2; i > 0; --i)
    build.profile.samples.push_back(build.profile.samples[i - 1]);
  return std::move(build.profile);
}

TEST(FlameTree, AgreesWithTheNaiveTreeOnRandomProfiles) {
  std::mt19937 random(20261121);
  for (int round = 0; round < 300; ++round) {
    const Profile profile = RandomProfile(random);
    const NaiveNode naive = NaiveTree(profile);
    for (const int64_t min_total_ns : {0, 1, 5}) {
      SCOPED_TRACE(testing::Message() << "round " << round << " min_total " << min_total_ns);
      const FlameTree tree = BuildFlameTree(profile, {.min_total_ns = min_total_ns});
      size_t next = 0;
      ASSERT_NO_FATAL_FAILURE(ExpectSame(tree, naive, min_total_ns, next));
      EXPECT_EQ(next, tree.nodes.parent.size());
      int64_t all_ns = tree.omitted.total_ns;
      for (const int64_t self : tree.nodes.self_ns) all_ns += self;
      EXPECT_EQ(all_ns, naive.total_ns);
    }
  }
}

TEST(FlameTree, TheOrderOfStacksAndSamplesDoesNotMatter) {
  std::mt19937 random(7);
  Profile profile = RandomProfile(random);
  const FlameTree before = BuildFlameTree(profile);
  std::ranges::shuffle(profile.samples, random);
  std::ranges::reverse(profile.stacks);
  for (Profile::Sample& sample : profile.samples)
    sample.stack = static_cast<int32_t>(profile.stacks.size()) - 1 - sample.stack;
  const FlameTree after = BuildFlameTree(profile);
  EXPECT_EQ(after.strings, before.strings);
  EXPECT_EQ(after.nodes.function, before.nodes.function);
  EXPECT_EQ(after.nodes.parent, before.nodes.parent);
  EXPECT_EQ(after.nodes.total_ns, before.nodes.total_ns);
}

// Two threads of one program in the same stack, and gpusonde's own thread.
Profile ThreeThreads() {
  ProfileBuilder build;
  build.Sample({build.LocationOf("step")}, 60);
  Profile& profile = build.profile;
  const Id128 process{1, 2};
  const auto thread = [&](int32_t tid, const std::string& name) {
    return Profile::Thread{process, 7, tid, "python3", name, "python3 train.py", 1};
  };
  profile.threads = {thread(7, "python3"), thread(8, "loader"), thread(9, "gpusonde")};
  profile.samples = {{0, 0, 1, 60}, {0, 1, 2, 30}, {0, 2, 1, 10}};
  return profile;
}

TEST(FlameTree, VariancesOfSampledWaitsAddUp) {
  ProfileBuilder builder;
  const int32_t main = builder.LocationOf("main");
  builder.Sample({builder.LocationOf("lock"), main}, 500);
  builder.Sample({builder.LocationOf("sleep"), main}, 400);
  builder.profile.type = model::ProfileType::kOffCpu;
  builder.profile.samples[0].variance_ns2 = 9;
  builder.profile.samples[1].variance_ns2 = 16;
  const FlameTree tree = BuildFlameTree(builder.profile);
  EXPECT_THAT(Names(tree), ElementsAre("", "main", "lock", "sleep"));
  EXPECT_THAT(tree.nodes.interval_ns, ElementsAre(10, 10, 6, 8)) << "1.96 · 5, 3 and 4, rounded up";
  builder.profile.type = model::ProfileType::kCpu;
  EXPECT_TRUE(BuildFlameTree(builder.profile).nodes.interval_ns.empty());
}

TEST(FlameTree, RootsSeparateProcessesAndThreads) {
  const FlameTree tree = BuildFlameTree(ThreeThreads(), {.roots = true});
  EXPECT_THAT(Names(tree), ElementsAre("", "python3 train.py (pid 7)", "main thread", "step",
                                       "thread loader (8)", "step"));
  EXPECT_THAT(tree.nodes.total_ns, ElementsAre(90, 90, 60, 60, 30, 30));
  EXPECT_EQ(tree.functions.kind.back(), "thread");
  EXPECT_THAT(Names(BuildFlameTree(ThreeThreads())), ElementsAre("", "step"));
}

TEST(FlameTree, FunctionsThatExplainNothingAreMarked) {
  ProfileBuilder build;
  const int32_t launch = build.Location({build.Function("cuLaunchKernel")}, build.Binary("libcuda.so.1"));
  const int32_t unnamed = build.LocationOf("[libc.so.6+0x27]");
  build.Sample({launch, build.LocationOf("main"), unnamed, build.LocationOf("_start")}, 5);
  build.profile.threads = {{Id128{1, 2}, 7, 7, "train", "train", "./train", 1}};
  build.profile.samples[0].thread = 0;
  const FlameTree tree = BuildFlameTree(build.profile, {.roots = true});
  EXPECT_THAT(Names(tree), ElementsAre("", "train (pid 7)", "main thread", "_start", "[libc.so.6+0x27]",
                                       "main", "cuLaunchKernel"));
  std::vector<int32_t> internal;
  for (const int32_t function : tree.nodes.function)
    internal.push_back(function < 0 ? -1 : tree.functions.internal[static_cast<size_t>(function)]);
  EXPECT_THAT(internal, ElementsAre(-1, 0, 0, 1, 1, 0, 1));
}

TEST(FlameTree, ThreadsOfProfilersAreCountedAndNotShown) {
  const FlameTree tree = BuildFlameTree(ThreeThreads());
  EXPECT_EQ(tree.nodes.total_ns.front(), 90);
  EXPECT_EQ(tree.samples, 3);
  EXPECT_EQ(tree.hidden.threads, 1);
  EXPECT_EQ(tree.hidden.total_ns, 10);
  const FlameTree all = BuildFlameTree(ThreeThreads(), {.helper_threads = true});
  EXPECT_EQ(all.nodes.total_ns.front(), 100);
  EXPECT_EQ(all.hidden.threads, 0);
}

}  // namespace
}  // namespace gpusonde::server
