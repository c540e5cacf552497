// SPDX-License-Identifier: Apache-2.0
// Observations of GPUs, as a reporter gets them from a server.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "fleet/observe/identified.h"
#include "fleet/observe/observation.h"
#include "fleet/unknown.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace gpusonde;  // NOLINT(google-build-using-namespace): a program of its own
  const auto read = fleet::ParseObservations({reinterpret_cast<const char*>(data), size});
  if (!read.has_value()) {
    if (read.error().message.empty()) std::abort();
    return 0;
  }
  const auto again = fleet::ParseObservations(fleet::ToJson(*read));
  if (!again.has_value() || *again != *read) std::abort();
  fleet::Catalog catalog;
  for (const fleet::Observation& observation : read->gpus) {
    static_cast<void>(fleet::SignatureOf(observation.fingerprint));
    catalog.applications.push_back({.name = "x", .fingerprint = observation.fingerprint});
  }
  if (fleet::IdentifiedJson(catalog, read->gpus).empty()) std::abort();
  if (fleet::IdentifiedText(catalog, read->gpus, "", {}).find('\x1b') != std::string::npos) std::abort();
  return 0;
}
