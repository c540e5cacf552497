// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "symbols/elf_code.h"
#include "symbols/elf_image.h"

namespace gpusonde::symbols {

// A function symbol; addresses are the file's own virtual addresses.
struct Symbol {
  uint64_t address = 0;
  uint64_t size = 0;  // 0 when the table doesn't say
  std::string name;   // as in the table (mangled)
};

// The build id of an ELF file (.note.gnu.build-id) as hex; empty where there is none.
// Errors: kCorrupt for what is no ELF file.
Result<std::string> ReadBuildId(int fd);

// The function symbols of one ELF file: .symtab, .dynsym and Go's own table together, sorted once; names stay
// in the file until asked for, so that a library with a million symbols costs 24 MB, not its string table.
// The file is never mapped: one that is truncated meanwhile gives an error, not a SIGBUS. Not thread-safe.
class ElfFile {
 public:
  // `name` is for messages; `debug_file`, if there is one, has the symbols that were stripped
  // (symbols/debug_file.h). Errors: kCorrupt for what is no 64-bit ELF file, kUnsupported for one with more
  // functions, or larger tables, than are read of a stranger's file (symbols/elf_image.h).
  static Result<ElfFile> Load(Fd fd, const std::string& name, std::optional<Fd> debug_file = std::nullopt);

  // The same; a debug file that can't be read, or isn't valid, is no reason to do without the file's own.
  static Result<ElfFile> LoadWithDebugFile(Fd fd, const std::string& name, Fd debug_file);

  // What Load found, for another process, and the same there: `fd` and `debug_file` are those that were given
  // to Load. Errors: kCorrupt.
  std::string Pack() const;
  static Result<ElfFile> Unpack(std::string_view bytes, Fd fd, Fd debug_file);

  // The function that covers the byte at `file_offset`, nothing if none does. A symbol of unknown size
  // reaches to the next one in its section. A stub of the procedure linkage table is called "name@plt".
  std::optional<Symbol> Find(uint64_t file_offset) const;

  // Where the function around `file_offset` begins, as an offset in the file, by the ranges that exception
  // handling needs: for code whose symbols were stripped. Nothing where they don't say.
  std::optional<uint64_t> FindFunctionStart(uint64_t file_offset) const;

  const std::string& build_id() const { return build_id_; }
  size_t bytes() const {
    return entries_.capacity() * sizeof(Entry) + function_starts_.capacity() * sizeof(uint32_t);
  }

 private:
  struct Segment {
    uint64_t file_offset, address, size;
  };
  struct Entry {
    uint64_t address;
    uint64_t name_position;  // in the file
    uint32_t size;
    uint8_t rank;           // which alias is shown: lower is better
    uint8_t in_debug_file;  // 1 or 0: where the name is
    uint8_t plt;            // 1 for a stub, called "name@plt"
  };

  ElfFile() = default;
  Status ReadSymbols(ElfImage& image, const std::string& name, bool is_debug_file);
  Status ReadGoFunctions(ElfImage& image, const std::string& name);
  Status ReadCode(ElfImage& image);
  Status Add(const Entry& entry, const std::string& name);
  // The segment with this byte, and the address of it.
  const Segment* SegmentAt(uint64_t file_offset) const;
  bool SameSection(uint64_t address, uint64_t other) const;
  void SortSymbols();
  std::string NameOf(const Entry& entry) const;

  Fd fd_;
  Fd debug_fd_;
  std::string build_id_;
  std::vector<Segment> segments_;  // PT_LOAD
  std::vector<Entry> entries_;     // by address, one per address
  std::vector<CodeSection> sections_;
  std::vector<uint32_t> function_starts_;  // addresses, ascending
};

}  // namespace gpusonde::symbols
