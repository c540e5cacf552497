// SPDX-License-Identifier: Apache-2.0
#include "fleet/simulator/applications.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <string>

#include "base/id128.h"
#include "fleet/fingerprint.h"
#include "fleet/kernel_name.h"
#include "fleet/simulator/parallel.h"
#include "fleet/simulator/seeds.h"
#include "fleet/unknown.h"

namespace gpusonde::fleet {
namespace {

constexpr double kOwnWords = 0.7;

// About 16,000 observations in all, which take seconds, 4 to 16 per application.
size_t LooksEach(size_t applications) { return std::clamp<size_t>(16'000 / applications, 4, 16); }

// One application: a stream, with names and durations of its own.
struct Application {
  const KernelStream* stream = nullptr;
  std::vector<std::string> names;
  std::vector<double> scales;  // of durations, by name
};

Application MakeApplication(std::span<const KernelStream> streams, uint32_t index, uint64_t seed) {
  Application application{.stream = &streams[index % streams.size()], .names = {}, .scales = {}};
  const bool is_real = index < streams.size();
  for (const std::string& name : application.stream->names) {
    if (is_real) {
      application.names.push_back(name);
      application.scales.push_back(1);
      continue;
    }
    std::string own;
    for (const std::string& word : KernelWords(name)) {
      const Id128 hash = IdHasher("simulated word").Add(seed).Add(index).Add(word).Finish();
      own += static_cast<double>(hash.high >> 11) * 0x1p-53 < kOwnWords
                 ? fmt::format("w{:c}{:c}{:c}{:c}{:c}_", 'a' + hash.low % 26, 'a' + hash.low / 26 % 26,
                               'a' + hash.low / 676 % 26, 'a' + hash.low / 17'576 % 26,
                               'a' + hash.low / 456'976 % 26)
                 : word + "_";
    }
    application.names.push_back(std::move(own));
    const Id128 hash = IdHasher("simulated scale").Add(seed).Add(index).Add(name).Finish();
    application.scales.push_back(std::exp2(4 * static_cast<double>(hash.high >> 11) * 0x1p-53 - 2));
  }
  return application;
}

uint64_t Volume(const std::array<uint32_t, 3>& extents) {
  return uint64_t{extents[0]} * extents[1] * extents[2];
}

struct Stretch {
  size_t begin = 0;
  size_t end = 0;
  double gpu = 1;            // how much slower this GPU is
  bool interleaved = false;  // with another application's kernels
  double scatter = 0;        // of durations
};

struct Seen {
  GpuWork work;
  Fingerprint fingerprint{};
};

Seen LookAt(const Application& application, const Application& other, const Stretch& stretch,
            privacy::Random& random) {
  Seen seen;
  FingerprintBuilder builder;
  size_t others = 0;
  const auto add = [&](const Application& of, const KernelStream::Operation& kernel, int64_t runs_ns) {
    const double scattered = 1 + stretch.scatter * (2 * DrawUnit(random) - 1);
    const auto duration_ns =
        static_cast<int64_t>(static_cast<double>(runs_ns) * of.scales[kernel.name] * stretch.gpu * scattered);
    builder.Add(&of == &application ? kernel.stream : 1000 + kernel.stream, of.names[kernel.name],
                duration_ns);
    seen.work.kernels.push_back({of.names[kernel.name], Volume(kernel.grid),
                                 static_cast<uint32_t>(Volume(kernel.block)), 0, kernel.shared_bytes,
                                 duration_ns});
  };
  for (size_t i = stretch.begin; i < stretch.end; ++i) {
    const auto& operation = application.stream->operations[i % application.stream->operations.size()];
    using Kind = KernelStream::Kind;
    if (operation.kind == Kind::kKernel) {
      add(application, operation, operation.duration_ns);
      if (!stretch.interleaved || seen.work.kernels.size() % 10 != 9) continue;
      const auto& theirs = other.stream->operations[others++ % other.stream->operations.size()];
      if (theirs.kind == Kind::kKernel) add(other, theirs, operation.duration_ns);
    } else if (operation.kind != Kind::kSet) {
      const auto direction = operation.kind == Kind::kToDevice     ? GpuWork::Direction::kToDevice
                             : operation.kind == Kind::kFromDevice ? GpuWork::Direction::kFromDevice
                                                                   : GpuWork::Direction::kWithinDevice;
      seen.work.copies.push_back({direction, operation.bytes, operation.duration_ns});
    }
  }
  seen.fingerprint = builder.Build();
  return seen;
}

// Half to one and a half times the stream, which repeats, from a random start.
Stretch DrawStretch(const KernelStream& stream, privacy::Random& random) {
  const auto operations = static_cast<double>(stream.operations.size());
  const auto begin = static_cast<size_t>(operations * DrawUnit(random));
  return {.begin = begin,
          .end = begin + 1 + static_cast<size_t>(operations * (0.5 + DrawUnit(random))),
          .gpu = std::exp2(2 * DrawUnit(random) - 1),
          .interleaved = DrawUnit(random) < 0.25,
          .scatter = 0.25};
}

}  // namespace

ApplicationMix::ApplicationMix(std::span<const KernelStream> streams, uint32_t known, uint32_t unknown,
                               uint64_t seed, int threads)
    : known_(known), looks_(size_t{known} + unknown) {
  std::vector<Application> applications(looks_.size());
  catalog_.applications.resize(known);
  ForEachIndex(applications.size(), threads, [&](size_t i, size_t) {
    applications[i] = MakeApplication(streams, static_cast<uint32_t>(i), seed);
    if (i >= known) return;
    privacy::Random random = SeededRandom(seed, "catalog", i);
    const Stretch whole{.begin = 0, .end = applications[i].stream->operations.size()};
    catalog_.applications[i] = {
        .name = i < streams.size()
                    ? applications[i].stream->source
                    : fmt::format("{} #{}", applications[i].stream->source, i / streams.size()),
        .fingerprint = LookAt(applications[i], applications[i], whole, random).fingerprint};
  });

  std::atomic<int64_t> look_ns = 0;
  std::atomic<int64_t> match_ns = 0;
  std::atomic<uint64_t> kernels = 0;
  const size_t each = LooksEach(applications.size());
  ForEachIndex(applications.size(), threads, [&](size_t i, size_t) {
    privacy::Random random = SeededRandom(seed, "looks", i);
    for (size_t nth = 0; nth < each; ++nth) {
      const Application& other = applications[static_cast<size_t>(random.Below(applications.size()))];
      const Stretch stretch = DrawStretch(*applications[i].stream, random);
      const int64_t begin_ns = ThreadTimeNs();
      const Seen seen = LookAt(applications[i], other, stretch, random);
      Look look{.fingerprint = seen.fingerprint, .rows = {}, .identified = {}};
      for (uint32_t group = 0; group < OpenCharacteristics(); ++group)
        look.rows.push_back(Measure(group, seen.work));
      const int64_t looked_ns = ThreadTimeNs();
      look.identified = BestMatch(Scores(catalog_, look.fingerprint));
      if (!look.identified.is_known) look.signature = SignatureOf(look.fingerprint);
      match_ns += ThreadTimeNs() - looked_ns;
      look_ns += looked_ns - begin_ns;
      kernels += seen.work.kernels.size();
      looks_[i].push_back(std::move(look));
    }
  });
  look_ns_per_kernel_ = static_cast<double>(look_ns) / static_cast<double>(std::max<uint64_t>(kernels, 1));
  match_ns_ = static_cast<double>(match_ns) / static_cast<double>(each * applications.size());
}

}  // namespace gpusonde::fleet
