// SPDX-License-Identifier: Apache-2.0
#include "fleet/catalog.h"

#include "fleet/privacy/constant_time.h"

namespace gpusonde::fleet {

Match BestMatch(std::span<const int32_t> scores) {
  // Shifted, so that the floor is 1 and lower scores are 0: unknown is then the first entry, which others
  // must exceed.
  std::vector<uint32_t> above(scores.size() + 1);
  for (size_t i = 0; i < scores.size(); ++i) {
    const auto shifted = static_cast<uint64_t>(int64_t{scores[i]} - kUnknownFloor + 1);
    above[i + 1] =
        static_cast<uint32_t>(privacy::Select(privacy::Opaque(uint64_t{0} - (shifted >> 63)), 0, shifted));
  }
  const size_t best = privacy::ArgMax(above);
  const uint64_t known = privacy::MaskLess(0, best) & 1;
  return {.is_known = known != 0, .application = static_cast<uint32_t>(best - known)};
}

std::vector<int32_t> Scores(const Catalog& catalog, const Fingerprint& fingerprint) {
  std::vector<int32_t> scores;
  scores.reserve(catalog.applications.size());
  for (const Catalog::Application& application : catalog.applications)
    scores.push_back(Score(application.fingerprint, fingerprint));
  return scores;
}

}  // namespace gpusonde::fleet
