// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fleet/catalog.h"
#include "fleet/characteristics.h"
#include "fleet/kernel_stream.h"

namespace gpusonde::fleet {

// A device's observation of its application in an epoch, and the results.
struct Look {
  Fingerprint fingerprint{};
  std::vector<Row> rows;  // by open group of characteristics
  Match identified;
  uint32_t signature = 0;  // of an unknown application, else 0
};

// The applications of a simulated fleet. The first are the real streams; the others are
// derived from them: the same order, shapes and gaps of kernels and copies, but seven of ten words of their
// names replaced by words of the application's own, and durations scaled kernel by kernel. Those beyond
// the catalog are unknown to it. Each is observed several times: half to one and a half times its stream,
// from a random start; durations scattered by a quarter and scaled by the GPU; in a quarter of the
// observations a tenth of the time is another application's. The catalog is made from complete runs.
// Deterministic for a seed. Thread-safe after construction.
class ApplicationMix {
 public:
  // streams not empty. Works on `threads` threads.
  ApplicationMix(std::span<const KernelStream> streams, uint32_t known, uint32_t unknown, uint64_t seed,
                 int threads);

  uint32_t known() const { return known_; }
  uint32_t count() const { return static_cast<uint32_t>(looks_.size()); }
  const Catalog& catalog() const { return catalog_; }
  std::span<const Look> looks(uint32_t application) const { return looks_[application]; }

  // CPU time for fingerprints and rows per observed kernel.
  double look_ns_per_kernel() const { return look_ns_per_kernel_; }
  // CPU time for identifying an application in public mode.
  double match_ns() const { return match_ns_; }

 private:
  uint32_t known_;
  Catalog catalog_;
  std::vector<std::vector<Look>> looks_;
  double look_ns_per_kernel_ = 0;
  double match_ns_ = 0;
};

}  // namespace gpusonde::fleet
