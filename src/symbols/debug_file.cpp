// SPDX-License-Identifier: Apache-2.0
#include "symbols/debug_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cstring>
#include <string_view>
#include <vector>

#include "base/regular_file.h"
#include "symbols/binary_identity.h"
#include "symbols/elf_file.h"
#include "symbols/elf_image.h"

namespace gpusonde::symbols {
namespace {

constexpr size_t kMinBuildIdHex = 6;
constexpr uint64_t kMaxDebugLink = 4096;
// The checksum is of the whole file; those of distributions have build ids and need none. 60 ms, of all files
// that are looked at together.
constexpr int64_t kMaxChecksummedBytes = int64_t{64} << 20;

struct DebugLink {
  std::string name;
  uint32_t checksum = 0;
};

// .gnu_debuglink: a file name, padding up to a multiple of four, a CRC-32.
std::optional<DebugLink> ReadDebugLink(int fd, const std::string& path) {
  Result<ElfImage> image = ElfImage::Read(fd, path);
  const auto* section = image.has_value() ? image->FindSection(".gnu_debuglink") : nullptr;
  if (section == nullptr) return std::nullopt;
  const auto bytes = image->Bytes(section->offset, section->size, kMaxDebugLink);
  if (!bytes.has_value() || bytes->empty()) return std::nullopt;
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): bytes are characters here
  const auto* text = reinterpret_cast<const char*>(bytes->data());
  DebugLink link{.name = {text, ::strnlen(text, bytes->size())}};
  const size_t checksum_at = (link.name.size() + 4) / 4 * 4;
  // A name, not a path: it must not lead out of the folders that are searched.
  if (checksum_at + sizeof link.checksum > bytes->size() || link.name.find('/') != std::string::npos ||
      link.name.empty() || link.name == "..")
    return std::nullopt;
  std::memcpy(&link.checksum, text + checksum_at, sizeof link.checksum);
  return link;
}

// Nothing when the file has more than `left` bytes, from which its own are taken.
std::optional<uint32_t> Checksum(int fd, int64_t& left) {
  struct stat status{};
  if (::fstat(fd, &status) != 0 || status.st_size > left) return std::nullopt;
  std::vector<unsigned char> buffer(size_t{1} << 16);
  uLong checksum = ::crc32(0, nullptr, 0);
  for (off_t position = 0;;) {
    const ssize_t count = ::pread(fd, buffer.data(), buffer.size(), position);
    if (count < 0) return std::nullopt;
    if (count == 0) return static_cast<uint32_t>(checksum);
    checksum = ::crc32(checksum, buffer.data(), static_cast<uInt>(count));
    position += count;
    left -= count;
    if (left < 0) return std::nullopt;  // it grows while it is read
  }
}

bool IsSameFile(int a, int b) {
  struct stat first{}, second{};
  return ::fstat(a, &first) == 0 && ::fstat(b, &second) == 0 && first.st_dev == second.st_dev &&
         first.st_ino == second.st_ino;
}

}  // namespace

DebugPlaces DebugPlaces::Of(const Fd& file, const std::string& path, int32_t pid) {
  struct stat status{};
  if (IsSystemFile(file, path) || ::fstat(file.get(), &status) != 0) return {.roots = {""}, .owner = 0};
  return {.roots = {fmt::format("/proc/{}/root", pid), ""}, .owner = status.st_uid};
}

std::optional<Fd> DebugPlaces::Open(const std::string& path) const {
  Result<Fd> file = OpenRegular(path);
  struct stat status{};
  if (!file.has_value() || ::fstat(file->get(), &status) != 0) return std::nullopt;
  if (status.st_uid != 0 && status.st_uid != owner) return std::nullopt;
  return std::move(*file);
}

std::optional<Fd> OpenByBuildId(const std::string& build_id, const DebugPlaces& places) {
  if (build_id.size() < kMinBuildIdHex) return std::nullopt;
  for (const std::string& root : places.roots) {
    std::optional<Fd> found = places.Open(fmt::format("{}/usr/lib/debug/.build-id/{}/{}.debug", root,
                                                      build_id.substr(0, 2), build_id.substr(2)));
    if (found.has_value() && ReadBuildId(found->get()).value_or("") == build_id) return found;
  }
  return std::nullopt;
}

std::optional<Fd> OpenDebugFile(int fd, const std::string& path, const DebugPlaces& places) {
  const std::string build_id = ReadBuildId(fd).value_or("");
  if (std::optional<Fd> found = OpenByBuildId(build_id, places); found.has_value()) return found;
  const std::optional<DebugLink> link = ReadDebugLink(fd, path);
  if (!link.has_value()) return std::nullopt;
  int64_t checksum_bytes_left = kMaxChecksummedBytes;
  const std::string folder = path.substr(0, path.rfind('/') + 1);
  for (const std::string& root : places.roots)
    for (const std::string& place : {folder, folder + ".debug/", "/usr/lib/debug" + folder}) {
      std::optional<Fd> found = places.Open(root + place + link->name);
      if (!found.has_value() || IsSameFile(found->get(), fd)) continue;
      const bool matches = build_id.empty() ? Checksum(found->get(), checksum_bytes_left) == link->checksum
                                            : ReadBuildId(found->get()).value_or("") == build_id;
      if (matches) return found;
    }
  return std::nullopt;
}

}  // namespace gpusonde::symbols
