// SPDX-License-Identifier: Apache-2.0
#include "server/gzip.h"

#define ZLIB_CONST  // z_stream::next_in points to const
#include <zlib.h>

#include <algorithm>
#include <limits>
#include <new>

#include "server/ascii.h"

namespace gpusonde::server {
namespace {

std::string_view Trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

// Whether the parameters after a coding say "never": q=0, q=0.0, …
bool IsRefused(std::string_view parameters) {
  const std::string_view text = Trimmed(parameters);
  if (!text.starts_with("q=") && !text.starts_with("Q=")) return false;
  return text.substr(2).find_first_not_of("0.") == std::string_view::npos;
}

}  // namespace

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

bool AcceptsGzip(std::string_view accept_encoding) {
  while (!accept_encoding.empty()) {
    const size_t comma = accept_encoding.find(',');
    const std::string_view item = accept_encoding.substr(0, comma);
    const size_t semicolon = item.find(';');
    const std::string_view coding = Trimmed(item.substr(0, semicolon));
    if (EqualsIgnoringCase(coding, "gzip") || EqualsIgnoringCase(coding, "x-gzip"))
      return semicolon == std::string_view::npos || !IsRefused(item.substr(semicolon + 1));
    if (comma == std::string_view::npos) break;
    accept_encoding.remove_prefix(comma + 1);
  }
  return false;
}

}  // namespace gpusonde::server
