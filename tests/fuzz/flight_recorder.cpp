// SPDX-License-Identifier: Apache-2.0
// A dump of PyTorch's Flight Recorder, as a pickle or as JSON, read by `diagnose`.
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "flight_recorder/hang.h"
#include "flight_recorder/print.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace gpusonde::flight_recorder;  // NOLINT(google-build-using-namespace): a program of its own
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  std::vector<Dump> dumps;
  for (int rank = 0; rank < 2; ++rank) {
    auto dump = ParseDump(bytes, "rank_" + std::to_string(rank), rank);
    if (!dump.has_value()) {
      if (dump.error().message.empty()) std::abort();
      return 0;
    }
    dumps.push_back(*std::move(dump));
  }
  const auto hang = FindHang(dumps);
  if (!hang.has_value()) {  // a rank that is not in its group
    if (hang.error().message.empty()) std::abort();
    return 0;
  }
  if (FormatText(dumps, *hang).empty() || FormatJson(dumps, *hang).empty()) std::abort();
  return 0;
}
