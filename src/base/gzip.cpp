// SPDX-License-Identifier: Apache-2.0
#include "base/gzip.h"

#define ZLIB_CONST  // z_stream::next_in points to const
#include <zlib.h>

#include <algorithm>
#include <limits>
#include <new>

namespace gpusonde {

std::string Gzip(std::string_view text, int level) {
  constexpr int kGzipFormat = 16 + MAX_WBITS;
  z_stream stream{};
  if (deflateInit2(&stream, level, Z_DEFLATED, kGzipFormat, MAX_MEM_LEVEL, Z_DEFAULT_STRATEGY) != Z_OK)
    throw std::bad_alloc();  // its only failure with these constants
  std::string out(deflateBound(&stream, text.size()), '\0');
  size_t taken = 0;
  int status = Z_OK;
  // zlib counts in 32 bits.
  constexpr size_t kMax = std::numeric_limits<uInt>::max();
  while (status == Z_OK) {
    const size_t offered = std::min(text.size() - taken, kMax);
    const size_t room = std::min(out.size() - stream.total_out, kMax);
    stream.next_in = reinterpret_cast<const Bytef*>(text.data() + taken);
    stream.avail_in = static_cast<uInt>(offered);
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + stream.total_out);
    stream.avail_out = static_cast<uInt>(room);
    status = deflate(&stream, taken + offered == text.size() ? Z_FINISH : Z_NO_FLUSH);
    taken += offered - stream.avail_in;
  }
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

}  // namespace gpusonde
