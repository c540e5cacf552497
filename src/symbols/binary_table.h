// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/id128.h"
#include "base/result.h"
#include "symbols/elf_file.h"
#include "symbols/python_interpreter.h"

namespace gpusonde::symbols {

// Every file that code was seen to run from, once per content: what it is called, and its functions, read
// when the first frame asks. Files are opened through the root of a process that maps them, so containers
// need nothing mounted. Not thread-safe.
class BinaryTable {
 public:
  struct Binary {
    Id128 id;
    std::string build_id;  // hex; empty where the file has none
    std::string path;      // in the mount namespace of the process that mapped it first
    std::string name;      // last part of the path
  };

  // The file with this build id, mapped from `path`. Adds it on first sight. Never fails; pointers stay
  // valid.
  const Binary* Intern(std::span<const uint8_t> build_id, const std::string& path);

  // The file that `path` names in the mount namespace of process `pid`; its build id is read from the file
  // (once per device and inode). A file that can't be read is known by its path alone.
  const Binary* InternFromProcess(int32_t pid, const std::string& path);

  // Makes sure that the symbols can be found: opens the file through /proc/`pid`/root, then by its path here,
  // and accepts it only if it has the build id it was mapped with. Tried once per process until it works.
  // Returns why not, in a sentence, the first time it fails.
  Status Load(const Binary* binary, int32_t pid);

  // Null when it was never interned.
  const Binary* FindById(const Id128& id) const;

  // The function at `file_offset`; nothing when no symbol covers it or the file could not be read.
  std::optional<Symbol> Find(const Binary* binary, uint64_t file_offset);

  // ElfFile::FindFunctionStart of it.
  std::optional<uint64_t> FindFunctionStart(const Binary* binary, uint64_t file_offset);

  // The file behind the binary, opened through process `pid`, then by its path here, its build id checked.
  static Result<Fd> OpenFile(const Binary& binary, int32_t pid);

  // The CPython interpreter inside the file, or null; looked for once per file, through process `pid`.
  const PythonInterpreter* FindPython(const Binary* binary, int32_t pid);

  size_t size() const { return by_id_.size(); }

 private:
  struct Entry {
    Binary binary;
    std::unique_ptr<ElfFile> file;
    int32_t failed_pid = 0;  // last process through which loading failed
    uint64_t used = 0;       // value of clock_ at the last use
    bool searched_for_python = false;
    std::optional<PythonInterpreter> python;
  };
  struct FileKey {
    uint64_t device, inode, size, changed_ns;
    bool operator==(const FileKey&) const = default;
  };
  struct FileKeyHash {
    size_t operator()(const FileKey& key) const { return key.inode * 31 + key.device; }
  };

  const Binary* Add(const Id128& id, std::string build_id, const std::string& path);
  void KeepWithinBudget(const Entry* keep);

  std::unordered_map<Id128, std::unique_ptr<Entry>> by_id_;
  std::unordered_map<const Binary*, Entry*> by_binary_;
  std::unordered_map<FileKey, const Binary*, FileKeyHash> by_file_;
  uint64_t clock_ = 0;
  size_t bytes_loaded_ = 0;
  size_t files_loaded_ = 0;
};

}  // namespace gpusonde::symbols
