// SPDX-License-Identifier: Apache-2.0
#include "symbols/elf_image.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <zlib.h>

#include <algorithm>
#include <bit>
#include <cerrno>

#include "base/fd.h"

namespace gpusonde::symbols {
namespace {

static_assert(std::endian::native == std::endian::little);

// Programs and libraries have under 50 sections and 20 segments; linkers merge what compilers split.
constexpr size_t kMaxSections = 4096;
constexpr size_t kMaxSegments = 256;
constexpr size_t kMaxSectionName = 31;
constexpr uint64_t kMaxSectionNames = uint64_t{1} << 20;

template <class T>
std::span<std::byte> BytesOf(T& value) {
  return std::as_writable_bytes(std::span(&value, 1));
}

Result<std::vector<std::byte>> Inflate(std::span<const std::byte> compressed, uint64_t size) {
  std::vector<std::byte> contents(size);
  uLongf length = contents.size();
  // NOLINTBEGIN(cppcoreguidelines-pro-type-reinterpret-cast): zlib's bytes are unsigned char
  const int error = ::uncompress(reinterpret_cast<Bytef*>(contents.data()), &length,
                                 reinterpret_cast<const Bytef*>(compressed.data()), compressed.size());
  // NOLINTEND(cppcoreguidelines-pro-type-reinterpret-cast)
  if (error != Z_OK || length != contents.size())
    return Fail(ErrorCode::kCorrupt, "a compressed section is malformed");
  return contents;
}

}  // namespace

Result<ElfImage> ElfImage::Read(int fd, std::string name) {
  ElfImage image(fd, std::move(name));
  TRY(image.ReadHeaders());
  return image;
}

Status ElfImage::ReadHeaders() {
  struct stat status{};
  if (::fstat(fd_, &status) != 0) return Fail(ErrnoError(errno, "stat " + name_));
  file_bytes_ = static_cast<uint64_t>(std::max<off_t>(status.st_size, 0));
  Elf64_Ehdr header{};
  if (!ReadAt(0, BytesOf(header)).has_value() || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB)
    return Fail(ErrorCode::kCorrupt, fmt::format("{} is not a 64-bit ELF file", name_));
  if (header.e_phnum > kMaxSegments)
    return Fail(ErrorCode::kUnsupported, fmt::format("{} has more than {} segments", name_, kMaxSegments));
  if (header.e_phentsize == sizeof(Elf64_Phdr) &&
      Contains(header.e_phoff, header.e_phnum * sizeof(Elf64_Phdr))) {
    segments_.resize(header.e_phnum);
    TRY(ReadAt(header.e_phoff, std::as_writable_bytes(std::span(segments_))));
    for (Segment& segment : segments_)
      segment.p_filesz = std::min(segment.p_filesz, file_bytes_ - std::min(segment.p_offset, file_bytes_));
  }
  return ReadSections(header);
}

// A file that was cut short, or rid of its sections, has none: its segments say enough.
Status ElfImage::ReadSections(const Elf64_Ehdr& header) {
  if (header.e_shnum > kMaxSections)
    return Fail(ErrorCode::kUnsupported, fmt::format("{} has more than {} sections", name_, kMaxSections));
  std::vector<Elf64_Shdr> table(header.e_shnum);
  if (header.e_shentsize != sizeof(Elf64_Shdr) ||
      !Contains(header.e_shoff, table.size() * sizeof(Elf64_Shdr)))
    return {};
  TRY(ReadAt(header.e_shoff, std::as_writable_bytes(std::span(table))));
  std::vector<std::byte> names;
  if (header.e_shstrndx < table.size()) {
    const Elf64_Shdr& section = table[header.e_shstrndx];
    if (Contains(section.sh_offset, section.sh_size)) {
      ASSIGN_OR_RETURN(names, Bytes(section.sh_offset, section.sh_size, kMaxSectionNames));
    }
  }
  for (const Elf64_Shdr& raw : table) {
    Section section{.name = {},
                    .type = raw.sh_type,
                    .flags = raw.sh_flags,
                    .address = raw.sh_addr,
                    .offset = raw.sh_offset,
                    .size = raw.sh_size,
                    .link = raw.sh_link,
                    .entry_bytes = raw.sh_entsize};
    if (raw.sh_name < names.size()) {
      // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): bytes are characters here
      const auto* text = reinterpret_cast<const char*>(&names[raw.sh_name]);
      section.name.assign(text, ::strnlen(text, std::min(kMaxSectionName, names.size() - raw.sh_name)));
    }
    if (raw.sh_type == SHT_NOBITS || !Contains(raw.sh_offset, raw.sh_size)) section.size = 0;
    sections_.push_back(std::move(section));
  }
  return {};
}

const ElfImage::Section* ElfImage::FindSection(std::string_view name) const {
  const auto found = std::ranges::find(sections_, name, &Section::name);
  return found == sections_.end() ? nullptr : &*found;
}

Result<std::vector<std::byte>> ElfImage::Bytes(uint64_t offset, uint64_t size, uint64_t limit) {
  if (size > limit)
    return Fail(ErrorCode::kUnsupported, fmt::format("{} has a table of {} MB", name_, size >> 20));
  if (!Contains(offset, size)) return Fail(ErrorCode::kCorrupt, name_ + " is cut short");
  TRY(Spend(size));
  std::vector<std::byte> bytes(size);
  TRY(ReadAt(offset, bytes));
  return bytes;
}

Result<std::vector<std::byte>> ElfImage::Contents(const Section& section, uint64_t limit) {
  if ((section.flags & SHF_COMPRESSED) == 0) return Bytes(section.offset, section.size, limit);
  ASSIGN_OR_RETURN(const std::vector<std::byte> bytes, Bytes(section.offset, section.size, limit));
  Elf64_Chdr header{};
  if (bytes.size() < sizeof header) return Fail(ErrorCode::kCorrupt, name_ + " is cut short");
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.ch_type != ELFCOMPRESS_ZLIB || header.ch_size > limit)
    return Fail(ErrorCode::kUnsupported, fmt::format("{}: {} can't be decompressed", name_, section.name));
  TRY(Spend(header.ch_size));
  return Inflate(std::span(bytes).subspan(sizeof header), header.ch_size);
}

Status ElfImage::ForEachPiece(uint64_t offset, uint64_t size, const Visit& visit) {
  std::vector<std::byte> buffer(std::min<uint64_t>(size, kPieceBytes));
  while (size > 0) {
    const std::span<std::byte> piece = std::span(buffer).first(std::min<uint64_t>(size, buffer.size()));
    TRY(Spend(piece.size()));
    TRY(ReadAt(offset, piece));
    ASSIGN_OR_RETURN(const bool more, visit(piece));
    if (!more) return {};
    offset += piece.size();
    size -= piece.size();
  }
  return {};
}

Status ElfImage::ReadAt(uint64_t offset, std::span<std::byte> into) const {
  ASSIGN_OR_RETURN(const size_t size, gpusonde::ReadAt(fd_, offset, into, name_));
  if (size < into.size()) return Fail(ErrorCode::kCorrupt, name_ + " is cut short");
  return {};
}

Status ElfImage::Spend(uint64_t bytes) {
  if (bytes > bytes_left_)
    return Fail(ErrorCode::kUnsupported,
                fmt::format("{} has more than {} MB of tables, or they overlap", name_, kMaxBytes >> 20));
  bytes_left_ -= bytes;
  return {};
}

bool ElfImage::Contains(uint64_t offset, uint64_t size) const {
  return offset <= file_bytes_ && size <= file_bytes_ - offset;
}

}  // namespace gpusonde::symbols
