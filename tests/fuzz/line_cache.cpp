// SPDX-License-Identifier: Apache-2.0
// A file of the source line cache with untrusted content.
#include "symbols/line_cache.h"

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>

#include "scratch_folder.h"

namespace {

constexpr gpusonde::Id128 kBinary{.high = 1, .low = 2};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using gpusonde::symbols::LineCache;
  static const ScratchFolder folder;
  const std::string path = folder / kBinary.ToHex();
  std::ofstream(path, std::ios::binary | std::ios::trunc)
      .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  const LineCache cache(folder.path());
  const auto lines = cache.Load(kBinary);
  // Entries added after damage are found again, and earlier ones are kept.
  const LineCache::Found found{{~uint64_t{0}, {{.function = "f", .file = "f.c", .line = 1}}}};
  cache.Add(kBinary, found);
  const auto more = cache.Load(kBinary);
  if (more.size() < lines.size()) std::abort();
  return 0;
}
