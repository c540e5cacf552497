// SPDX-License-Identifier: Apache-2.0
// The stream of every trace: plain, gzip or zstd, recognised by its first bytes. As in the importers, output
// is bounded by reading no more than needed.
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "analyze_bytes.h"
#include "importers/stream/byte_source.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr int kMaxReads = 64;  // 16 MiB
  static FuzzedFile file;
  file.Fill({data, size});
  const auto source = gpusonde::importers::ByteSource::Open(file.path());
  if (!source.has_value()) return 0;
  std::vector<char> buffer(size_t{256} << 10);
  for (int reads = 0; reads < kMaxReads; ++reads) {
    const auto read = (*source)->Read(buffer);
    if (!read.has_value() && read.error().message.empty()) std::abort();
    if (read.has_value() && *read > buffer.size()) std::abort();
    if (!read.has_value() || *read < buffer.size()) break;
  }
  if ((*source)->file_offset() > size) std::abort();
  return 0;
}
