// SPDX-License-Identifier: Apache-2.0
// On what real programs put on their GPUs (data/kernel-streams): seven applications, one run of each.
#include "fleet/fingerprint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

#include "fleet/catalog.h"
#include "fleet/kernel_stream.h"
#include "fleet/privacy/testing/seeded.h"

namespace gpusonde::fleet {
namespace {

struct Launch {
  int64_t stream;
  std::string name;
  int64_t duration_ns;
};

struct Application {
  std::string name;
  std::vector<Launch> launches;
};

// The kernels of data/kernel-streams.
std::vector<Application> Applications() {
  std::vector<Application> applications;
  const auto streams = ReadKernelStreams("data/kernel-streams");
  for (const KernelStream& stream : streams.value()) {
    Application application{stream.source, {}};
    for (const KernelStream::Operation& operation : stream.operations)
      if (operation.kind == KernelStream::Kind::kKernel)
        application.launches.push_back(
            {operation.stream, stream.names[operation.name], operation.duration_ns});
    applications.push_back(std::move(application));
  }
  return applications;
}

Fingerprint Of(const std::vector<Launch>& launches, size_t from, size_t to, double slower = 1) {
  FingerprintBuilder builder;
  for (size_t i = from; i < to; ++i)
    builder.Add(launches[i].stream, launches[i].name,
                std::llround(static_cast<double>(launches[i].duration_ns) * slower));
  return builder.Build();
}

Match Known(size_t application) {
  return {.is_known = true, .application = static_cast<uint32_t>(application)};
}

Catalog CatalogOf(const std::vector<Application>& applications) {
  Catalog catalog;
  for (const Application& application : applications)
    catalog.applications.push_back(
        {application.name, Of(application.launches, 0, application.launches.size())});
  return catalog;
}

TEST(Fingerprint, HasItsLength) {
  for (const Application& application : Applications()) {
    const Fingerprint fingerprint = Of(application.launches, 0, application.launches.size());
    EXPECT_NEAR(std::sqrt(Score(fingerprint, fingerprint)), kFingerprintLength, 8) << application.name;
  }
}

TEST(Fingerprint, OfNothingIsNothing) {
  FingerprintBuilder builder;
  EXPECT_EQ(builder.Build(), Fingerprint{});
  builder.Add(0, "kernel", 0);
  EXPECT_EQ(builder.Build(), Fingerprint{});
}

TEST(Fingerprint, KeepsABoundedNumberOfSequences) {
  privacy::Random random = privacy::Seeded(1);
  FingerprintBuilder builder;
  for (int i = 0; i < 150'000; ++i) {
    const auto which = static_cast<char>(random.Below(90));
    const auto other = static_cast<char>(random.Below(90));
    builder.Add(0,
                std::string{static_cast<char>('a' + which % 10), static_cast<char>('a' + which / 10), '_',
                            static_cast<char>('a' + other % 10), static_cast<char>('a' + other / 10)},
                1000);
  }
  // And 8,100 names of two words.
  EXPECT_LT(builder.Features().size(), 262'144u + 10'000);
}

TEST(Fingerprint, SurvivesAbsurdDurations) {
  FingerprintBuilder builder;
  for (int i = 0; i < 10; ++i) builder.Add(0, "kernel", std::numeric_limits<int64_t>::max());
  const Fingerprint fingerprint = builder.Build();
  EXPECT_NEAR(std::sqrt(Score(fingerprint, fingerprint)), kFingerprintLength, 8);
}

TEST(Fingerprint, IsTheSameOnASlowerGpu) {
  const auto applications = Applications();
  ASSERT_FALSE(applications.empty());
  const auto& launches = applications.front().launches;
  EXPECT_EQ(Of(launches, 0, launches.size()), Of(launches, 0, launches.size(), 3.0));
}

TEST(Identification, PartsOfAStreamAreRecognised) {
  const auto applications = Applications();
  const Catalog catalog = CatalogOf(applications);
  int right = 0;
  int parts = 0;
  for (size_t application = 0; application < applications.size(); ++application) {
    const auto& launches = applications[application].launches;
    // Thirds: another part of the step each, as a short look finds it.
    for (size_t third = 0; third < 3; ++third) {
      const auto found = BestMatch(
          Scores(catalog, Of(launches, launches.size() * third / 3, launches.size() * (third + 1) / 3)));
      ++parts;
      right += found == Known(application);
      EXPECT_TRUE(!found.is_known || found == Known(application)) << "never taken for another";
    }
  }
  RecordProperty("right", right);
  std::printf("  %d of %d thirds of %zu applications recognised, none mistaken\n", right, parts,
              applications.size());
  EXPECT_GE(right, parts * 7 / 10);
}

TEST(Identification, StreamsThatAreMixedWithAnothersAreRecognised) {
  const auto applications = Applications();
  const Catalog catalog = CatalogOf(applications);
  for (size_t application = 0; application < applications.size(); ++application) {
    const auto& launches = applications[application].launches;
    FingerprintBuilder builder;
    for (size_t i = 0; i < launches.size(); ++i) {
      builder.Add(launches[i].stream, launches[i].name, launches[i].duration_ns);
      if (i % 10 == 9) builder.Add(99, "void stranger<float>(float*)", launches[i].duration_ns);
    }
    EXPECT_EQ(BestMatch(Scores(catalog, builder.Build())), Known(application))
        << applications[application].name;
  }
}

TEST(Identification, WhatIsNotInTheCatalogIsUnknown) {
  const auto applications = Applications();
  for (size_t left_out = 0; left_out < applications.size(); ++left_out) {
    auto others = applications;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(left_out));
    const Catalog catalog = CatalogOf(others);
    const auto& launches = applications[left_out].launches;
    const auto scores = Scores(catalog, Of(launches, 0, launches.size()));
    EXPECT_EQ(BestMatch(scores), Match()) << applications[left_out].name;
  }
}

TEST(BestMatch, TakesTheFirstOfEqualsAboveTheFloor) {
  using Score = std::vector<int32_t>;
  EXPECT_EQ(BestMatch(Score{}), Match());
  EXPECT_EQ(BestMatch(Score{kUnknownFloor - 1, -500'000}), Match());
  EXPECT_EQ(BestMatch(Score{kUnknownFloor}), Known(0));
  EXPECT_EQ(BestMatch(Score{0, kUnknownFloor}), Known(1));
  EXPECT_EQ(BestMatch(Score{kUnknownFloor + 5, kUnknownFloor + 9, kUnknownFloor + 9}), Known(1));
}

}  // namespace
}  // namespace gpusonde::fleet
