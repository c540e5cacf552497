// SPDX-License-Identifier: Apache-2.0
// AdmissionReviews, which whoever reaches `gpusonde admission` may send.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "admission/pod_patch.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace gpusonde;  // NOLINT(google-build-using-namespace): a program of its own
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto answer = admission::AnswerReview(text, "/opt/gpusonde/lib/libgpusonde-inject.so");
  if (!answer.has_value()) {
    if (answer.error().message.empty()) std::abort();
    return 0;
  }
  if (!answer->json.contains(R"("allowed":true)")) std::abort();
  if (answer->profiled > 2 * admission::kMaxContainers || answer->json.size() > 2'000'000 + 6 * size)
    std::abort();
  return 0;
}
