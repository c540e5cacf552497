// SPDX-License-Identifier: Apache-2.0
// The stream under every trace: plain, gzip or zstd, told by its first bytes. Output is bounded here as the
// importers bound it, by reading no more than they need.
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
