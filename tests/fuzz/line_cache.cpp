// SPDX-License-Identifier: Apache-2.0
// A file of the cache of source lines, as somebody else left it.
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
  // What is added after damage is found again, and nothing that was read is lost.
  const LineCache::Found found{{~uint64_t{0}, {{.function = "f", .file = "f.c", .line = 1}}}};
  cache.Add(kBinary, found);
  const auto more = cache.Load(kBinary);
  if (more.size() < lines.size()) std::abort();
  return 0;
}
