// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace gpusonde::symbols {

// The headers of a 64-bit ELF file of this machine's byte order (elf(5)), and a bounded way to read what they
// point to.
//
// Any user may run a file of their own making, so all of it is hostile: sections may overlap or be holes of
// any size, and the file may change while it is read. Nothing is mapped, each header is read once, parts
// outside the file are left out, and at most kMaxBytes are read through one image. Not thread-safe.
class ElfImage {
 public:
  // Takes 0.2 s to read and look through; libLLVM's tables have 15 MB.
  static constexpr uint64_t kMaxBytes = uint64_t{256} << 20;

  struct Section {
    std::string name;  // its first 31 bytes
    uint32_t type = 0;
    uint64_t flags = 0;
    uint64_t address = 0;
    uint64_t offset = 0;  // in the file
    uint64_t size = 0;    // 0 when it has no bytes there
    uint32_t link = 0;
    uint64_t entry_bytes = 0;
  };
  using Segment = Elf64_Phdr;

  // `fd` must outlive the image; `name` is for messages. Errors: kCorrupt for what is no such file,
  // kUnsupported for more headers than any linker writes.
  static Result<ElfImage> Read(int fd, std::string name);

  std::span<const Section> sections() const { return sections_; }
  std::span<const Segment> segments() const { return segments_; }
  // Null where there is none.
  const Section* SectionAt(size_t index) const {
    return index < sections_.size() ? &sections_[index] : nullptr;
  }
  const Section* FindSection(std::string_view name) const;

  // The bytes of the file from `offset` on. Errors: kUnsupported for more than `limit`, and when kMaxBytes
  // are used up; kCorrupt when the file has fewer.
  Result<std::vector<std::byte>> Bytes(uint64_t offset, uint64_t size, uint64_t limit = kMaxBytes);

  // The bytes of a section, decompressed where it is compressed (zlib).
  Result<std::vector<std::byte>> Contents(const Section& section, uint64_t limit = kMaxBytes);

  // Calls visit(piece) for the same bytes piece by piece, until it returns false or an error.
  using Visit = std::function<Result<bool>(std::span<const std::byte> piece)>;
  Status ForEachPiece(uint64_t offset, uint64_t size, const Visit& visit);

  // Calls visit(entry) for each entry of a table, until it returns false or an error. A table with entries of
  // another size has none.
  template <class T>
  Status ForEach(const Section& table, const std::function<Result<bool>(const T&)>& visit) {
    static_assert(kPieceBytes % sizeof(T) == 0);
    if (table.entry_bytes != sizeof(T)) return {};
    return ForEachPiece(table.offset, table.size, [&visit](std::span<const std::byte> piece) -> Result<bool> {
      for (; piece.size() >= sizeof(T); piece = piece.subspan(sizeof(T))) {
        T entry;
        std::memcpy(&entry, piece.data(), sizeof entry);
        ASSIGN_OR_RETURN(const bool more, visit(entry));
        if (!more) return false;
      }
      return true;
    });
  }

 private:
  static constexpr size_t kPieceBytes = 3 << 15;  // a multiple of every kind of entry

  ElfImage(int fd, std::string name) : fd_(fd), name_(std::move(name)) {}
  Status ReadHeaders();
  Status ReadSections(const Elf64_Ehdr& header);
  Status ReadAt(uint64_t offset, std::span<std::byte> into) const;
  Status Spend(uint64_t bytes);
  bool Contains(uint64_t offset, uint64_t size) const;

  int fd_;
  std::string name_;
  uint64_t file_bytes_ = 0;
  uint64_t bytes_left_ = kMaxBytes;
  std::vector<Section> sections_;
  std::vector<Segment> segments_;
};

}  // namespace gpusonde::symbols
