// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/id128.h"
#include "base/result.h"
#include "symbols/binary_identity.h"
#include "symbols/elf_file.h"
#include "symbols/file_reader.h"
#include "symbols/python_interpreter.h"

namespace gpusonde::symbols {

// Every file from which code was observed to run, once per identity, with its name and its functions, which
// are read for the first frame in it. Files are opened through the root of a process that maps them, so
// containers need nothing mounted. Not thread-safe.
class BinaryTable {
 public:
  static constexpr std::string_view kVdso = "[vdso]";

  // Without a reader files are parsed by this process: for tests.
  explicit BinaryTable(FileReader* reader = nullptr) : reader_(reader) {}

  struct Binary {
    Id128 id;
    std::string build_id;  // hex; empty where the file has none
    std::string path;      // as the process that mapped it first sees it
    std::string name;      // last part of the path

    // Not of code that the kernel puts into processes, such as "[vsyscall]". Of the vDSO it is ours.
    bool IsFile() const { return !path.starts_with('[') || path == kVdso; }
    // Whether its build id is all that it is known by (symbols/binary_identity.h).
    bool IsSystemFile() const { return !build_id.empty() && id == SystemBinaryId(build_id); }
  };

  // A process that maps a file, and the user to whose share of time reading it is charged.
  struct Mapper {
    int32_t pid = 0;
    int32_t user_id = 0;
    bool wait = true;  // for the reader, up to FileReader::Options::timeout_ns
  };

  // A mapping as the kernel reported it. The process may have ended since.
  struct Mapped {
    int32_t pid = 0;
    int32_t user_id = 0;  // of the process
    std::span<const uint8_t> build_id;
    std::string path;  // in the mount namespace of the process
  };

  // The file that was mapped, by its identity (symbols/binary_identity.h). Adds it on first sight. What can
  // no longer be opened is taken for the file that processes of the same user mapped before from this path
  // with this build id. A file that can't be read is identified by its path and build id, and has no symbols.
  // Pointers stay valid until ForgetExcept.
  const Binary* Intern(const Mapped& mapped);

  // The file that `path` names below the root of process `pid` now, or, if it ends in " (deleted)" as in
  // /proc/PID/maps, or the process can't reach it (`outside_root`, proc::MappedFile), the one that the
  // process has mapped from it.
  const Binary* InternFromProcess(int32_t pid, const std::string& path, bool outside_root = false);

  // Makes sure that the symbols can be found: opens the file as OpenFile does. Tried once per process until
  // it works. Errors, the first time it fails: the reason, in a sentence. While IsPending the file is still
  // being read: call it again later.
  Status Load(const Binary* binary, const Mapper& mapper);
  bool IsPending(const Binary* binary) const { return by_binary_.at(binary)->pending; }

  // Null when it was never interned.
  const Binary* FindById(const Id128& id) const;

  // The function at `file_offset`; nothing when no symbol covers it or the file could not be read.
  std::optional<Symbol> Find(const Binary* binary, uint64_t file_offset);

  // ElfFile::FindFunctionStart of it.
  std::optional<uint64_t> FindFunctionStart(const Binary* binary, uint64_t file_offset);

  // The file behind the binary, opened through the root of process `pid`, then by its path here, then, if it
  // was deleted, replaced or is out of the process's reach, through the process's mappings; accepted only if
  // it is the same file. Errors: why it couldn't be opened through the root.
  static Result<Fd> OpenFile(const Binary& binary, int32_t pid);

  // The CPython interpreter inside the file, or null; looked for once per file. Nullopt while the file is
  // still being read.
  std::optional<std::shared_ptr<const PythonInterpreter>> FindPython(const Binary* binary,
                                                                     const Mapper& mapper);

  // Forgets all files but those in `used`, which are all that the caller holds pointers to. Those that are
  // still being read stay too.
  void ForgetExcept(const std::unordered_set<const Binary*>& used);

  size_t size() const { return by_id_.size(); }
  // How many files' build ids are remembered.
  size_t build_ids() const { return build_ids_.size(); }

 private:
  struct Entry {
    Binary binary;
    std::unique_ptr<ElfFile> file;
    bool pending = false;    // requested from the reader, and not answered yet
    int32_t failed_pid = 0;  // last process through which loading failed
    uint64_t used = 0;       // value of clock_ at the last use
    bool searched_for_python = false;
    std::shared_ptr<const PythonInterpreter> python;
  };
  struct FileKey {
    uint64_t device, inode, size, changed_ns;
    bool operator==(const FileKey&) const = default;
  };
  struct FileKeyHash {
    size_t operator()(const FileKey& key) const { return key.inode * 31 + key.device; }
  };

  const Binary* Add(BinaryIdentity identity, const std::string& path);
  const Binary* AddUnreadable(const std::string& build_id, const std::string& path);
  // IdentifyBinary, with the build id read once per device, inode and change.
  Result<BinaryIdentity> Identify(const Fd& file, const std::string& path);
  void KeepWithinBudget(const Entry* keep);
  // Nullopt while the file is still being read.
  std::optional<Result<ElfFile>> ReadSymbols(const Binary& binary, const Mapper& mapper);

  FileReader* reader_;
  std::unordered_map<Id128, std::unique_ptr<Entry>> by_id_;
  std::unordered_map<const Binary*, Entry*> by_binary_;
  std::unordered_map<FileKey, std::string, FileKeyHash> build_ids_;
  std::unordered_map<Id128, const Binary*> last_mapped_;  // by user, path and build id
  uint64_t clock_ = 0;
  size_t bytes_loaded_ = 0;
  size_t files_loaded_ = 0;
};

}  // namespace gpusonde::symbols
