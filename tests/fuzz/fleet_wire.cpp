// SPDX-License-Identifier: Apache-2.0
// Untrusted input of a fleet's aggregator, device and simulator: reports, ciphertexts, answers, kernel
// streams.
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "fleet/kernel_stream.h"
#include "fleet/privacy/bfv.h"
#include "fleet/roles/report.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace gpusonde;  // NOLINT(google-build-using-namespace): a program of its own
  const std::span<const uint8_t> bytes(data, size);
  if (const auto header = fleet::ReadHeader(bytes); header.has_value()) {
    const auto body = fleet::BodyOf(bytes);
    if (body.size() != fleet::BodyBytes(header->kind)) std::abort();
    if (header->kind == fleet::ReportKind::kBfv) static_cast<void>(privacy::Unpack(body));
    if (fleet::IsSigned(bytes, fleet::VerifyKey{})) std::abort();
  }
  if (const auto ciphertext = privacy::Unpack(bytes); ciphertext.has_value())
    if (privacy::Pack(*ciphertext) != std::vector<uint8_t>(bytes.begin(), bytes.end())) std::abort();
  static_cast<void>(privacy::UnpackAnswer(bytes, std::vector<uint32_t>(3)));
  const auto stream = fleet::ParseKernelStream(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!stream.has_value()) return 0;
  for (const auto& operation : stream->operations)
    if (operation.kind == fleet::KernelStream::Kind::kKernel && operation.name >= stream->names.size())
      std::abort();
  return 0;
}
