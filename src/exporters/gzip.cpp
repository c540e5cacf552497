// SPDX-License-Identifier: Apache-2.0
#include "exporters/gzip.h"

#include <zlib.h>

namespace gpusonde::exporters {

Result<std::string> GzipFile(std::string_view data) {
  constexpr int kGzipWrapper = 16;
  constexpr int kDefaultMemory = 8;
  z_stream stream{};
  if (::deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, MAX_WBITS + kGzipWrapper, kDefaultMemory,
                     Z_DEFAULT_STRATEGY) != Z_OK)
    return Fail(ErrorCode::kOutOfSpace, "gzip: no memory for the compressor");
  std::string compressed(::deflateBound(&stream, data.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data()));
  stream.avail_in = static_cast<uInt>(data.size());
  stream.next_out = reinterpret_cast<Bytef*>(compressed.data());
  stream.avail_out = static_cast<uInt>(compressed.size());
  const int result = ::deflate(&stream, Z_FINISH);  // enough in one call: the output has room for the bound
  compressed.resize(stream.total_out);
  ::deflateEnd(&stream);
  if (result != Z_STREAM_END) return Fail(ErrorCode::kInternal, "gzip: the compressor stopped early");
  return compressed;
}

}  // namespace gpusonde::exporters
