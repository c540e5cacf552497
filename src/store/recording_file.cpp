// SPDX-License-Identifier: Apache-2.0
#include "store/recording_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "base/fd.h"
#include "store/duckdb/utf8.h"

namespace gpusonde::store {
namespace {

// The begin of a DuckDB file (its src/include/duckdb/storage/storage_info.hpp, unchanged since 0.10): three
// blocks of 4096 bytes, each with a checksum of 8 first. The main header has "DUCK" and a version; of the two
// database headers the one with the larger iteration holds.
constexpr size_t kHeaderBytes = 4096;
constexpr size_t kHeaders = 3;
constexpr std::string_view kDuckDbMagic = "DUCK";
constexpr size_t kMagicOffset = 8;
// Within a database header: iteration, meta block, free list, block count, block size; 8 bytes each.
constexpr size_t kIterationOffset = 8;
constexpr size_t kBlockCountOffset = 32;
constexpr size_t kBlockSizeOffset = 40;

struct Magic {
  std::string_view bytes;
  std::string_view meaning;
};

constexpr std::array kForeign = {
    Magic{"SQLite format 3", "a SQLite database"},
    Magic{"\x7f"
          "ELF",
          "an ELF program or library"},
    Magic{"PAR1", "a Parquet file"},
    Magic{"\x1f\x8b", "gzip-compressed data"},
    Magic{"\x28\xb5\x2f\xfd", "zstd-compressed data"},
    Magic{"PK\x03\x04", "a zip archive"},
    Magic{"gpusonde", "a spool segment; name its folder to `gpusonde record --recover`"},
    Magic{"{", "JSON or other text"},
};

std::string_view Guess(std::string_view begin) {
  for (const Magic& magic : kForeign)
    if (begin.starts_with(magic.bytes)) return magic.meaning;
  const bool has_control = std::ranges::any_of(
      begin, [](unsigned char c) { return c < 0x20 && c != '\n' && c != '\r' && c != '\t'; });
  while (!begin.empty() && static_cast<unsigned char>(begin.back()) >= 0x80)
    begin.remove_suffix(1);  // cut there
  return !has_control && duckdb::IsUtf8(begin) && !begin.empty() ? "a text file" : "something else";
}

uint64_t Load(std::string_view bytes, size_t at) {
  uint64_t value = 0;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

// What the header says that the file holds at least, in bytes.
uint64_t ExpectedBytes(std::string_view headers) {
  std::string_view current = headers.substr(kHeaderBytes, kHeaderBytes);
  const std::string_view other = headers.substr(2 * kHeaderBytes, kHeaderBytes);
  if (Load(other, kIterationOffset) > Load(current, kIterationOffset)) current = other;
  return headers.size() + Load(current, kBlockCountOffset) * Load(current, kBlockSizeOffset);
}

}  // namespace

Status CheckRecordingFile(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) return Fail(ErrnoError(errno, "open recording " + path));
  const auto corrupt = [&](std::string_view what) {
    return Fail(ErrorCode::kCorrupt, fmt::format("{} is no recording: {}", path, what));
  };
  if (S_ISDIR(status.st_mode)) return corrupt("it is a folder");
  if (!S_ISREG(status.st_mode)) return corrupt("it is no regular file");
  ASSIGN_OR_RETURN(const Fd fd, Open(path, O_RDONLY));
  std::string headers(kHeaderBytes * kHeaders, '\0');
  const ssize_t count = ::pread(fd.get(), headers.data(), headers.size(), 0);
  if (count < 0) return Fail(ErrnoError(errno, "read " + path));
  if (count == 0) return corrupt("it is empty");
  headers.resize(static_cast<size_t>(count));
  if (headers.size() < kMagicOffset + kDuckDbMagic.size() ||
      headers.compare(kMagicOffset, kDuckDbMagic.size(), kDuckDbMagic) != 0)
    return corrupt(fmt::format("it looks like {}", Guess(std::string_view(headers).substr(0, 256))));
  const auto size = static_cast<uint64_t>(status.st_size);
  const uint64_t expected =
      headers.size() < kHeaderBytes * kHeaders ? kHeaderBytes * kHeaders : ExpectedBytes(headers);
  if (size < expected)
    return Fail(ErrorCode::kCorrupt,
                fmt::format("{} is truncated: {} of {} bytes are there; copy it again, or recover "
                            "it from its spool",
                            path, size, expected));
  return {};
}

}  // namespace gpusonde::store
