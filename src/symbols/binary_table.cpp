// SPDX-License-Identifier: Apache-2.0
#include "symbols/binary_table.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/log.h"
#include "base/regular_file.h"
#include "base/text.h"
#include "base/time.h"
#include "symbols/debug_file.h"

namespace gpusonde::symbols {
namespace {

constexpr std::string_view kDeleted = " (deleted)";

// Symbol tables kept in memory. libLLVM's has 170,000 functions of 24 bytes, CPython's 12,000. A single file
// may have more (symbols/elf_file.cpp), and is then the only one.
constexpr size_t kMaxBytesLoaded = size_t{48} << 20;

// Files kept open, each with a debug file at most: descriptors are limited to 1,024 by default, and a file
// that is deleted keeps its disk space while it is open. A machine runs code of some hundred files, of which
// few are new in any one minute; what was closed is opened again when a frame in it has no name yet.
constexpr size_t kMaxFilesLoaded = 128;

// Files and mappings whose identity is remembered before starting over; 100 bytes each.
constexpr size_t kMaxRemembered = 100'000;

// Mappings of a process that are searched for a deleted file; Linux allows 65,530 by default. 2 us each.
constexpr int kMaxMappingsSearched = 16'384;

std::string LastPart(std::string_view path) {
  if (path.ends_with(kDeleted)) path.remove_suffix(kDeleted.size());
  return std::string(path.substr(path.rfind('/') + 1));
}

// A file that a process maps, by the path that /proc/PID/maps has for it. Errors: kNotFound;
// kPermissionDenied without CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE. Source: proc(5), /proc/PID/map_files.
Result<Fd> OpenMapped(int32_t pid, const std::string& path) {
  std::error_code error;
  std::filesystem::directory_iterator link(fmt::format("/proc/{}/map_files", pid), error);
  for (int count = 0; !error && link != std::filesystem::directory_iterator(); link.increment(error)) {
    if (++count > kMaxMappingsSearched) break;
    std::error_code failed;
    if (std::filesystem::read_symlink(link->path(), failed) == path) return OpenRegular(link->path());
    if (failed == std::errc::operation_not_permitted || failed == std::errc::permission_denied)
      return Fail(ErrorCode::kPermissionDenied, path + ": the mapping may not be read");
  }
  return Fail(ErrorCode::kNotFound, path + ": not mapped");
}

// A file that a process still maps though its path names no file or another one by now, as after an upgrade.
// `path`: with or without " (deleted)". Errors: those of OpenMapped.
Result<Fd> OpenDeleted(int32_t pid, const std::string& path) {
  return OpenMapped(pid, path.ends_with(kDeleted) ? path : path + std::string(kDeleted));
}

// The vDSO is no file, but every process has the same one: ours.
Result<Fd> OpenVdso() {
  const auto address = ::getauxval(AT_SYSINFO_EHDR);
  if (address == 0) return Fail(ErrorCode::kNotFound, "this process has no vDSO");
  // Two pages on every x86-64 kernel so far; the ELF parser ignores what lies behind the sections.
  const size_t size = 2 * static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  Fd fd(::memfd_create("vdso", MFD_CLOEXEC));
  if (!fd.valid()) return Fail(ErrnoError(errno, "memfd_create"));
  // Through the kernel, so that a shorter mapping is an error and no crash.
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the kernel gives the address as a number
  TRY(WriteAll(fd.get(), {reinterpret_cast<const std::byte*>(address), size}));
  return fd;
}

// The kernel's own word.
BinaryIdentity IdentifyVdso(const Fd& vdso) {
  std::string build_id = ReadBuildId(vdso.get()).value_or("");
  return {SystemBinaryId(build_id), build_id};
}

Result<FileReader::Files> OpenWithDebugFile(const BinaryTable::Binary& binary, int32_t pid) {
  ASSIGN_OR_RETURN(Fd file, BinaryTable::OpenFile(binary, pid));
  const DebugPlaces places = DebugPlaces::Of(file, binary.path, pid);
  std::optional<Fd> debug = OpenDebugFile(file.get(), binary.path, places);
  return FileReader::Files{std::move(file), debug.has_value() ? std::move(*debug) : Fd()};
}

FileReader::Request About(FileRequestKind kind, const BinaryTable::Binary& binary,
                          const BinaryTable::Mapper& mapper) {
  return {.kind = kind,
          .file = binary.id,
          .user_id = binary.IsSystemFile() ? 0 : mapper.user_id,
          .name = binary.path,
          .wait = mapper.wait};
}

}  // namespace

const BinaryTable::Binary* BinaryTable::Add(BinaryIdentity identity, const std::string& path) {
  auto [found, added] = by_id_.try_emplace(identity.id);
  if (added) {
    found->second = std::make_unique<Entry>();
    found->second->binary = {identity.id, std::move(identity.build_id), path, LastPart(path)};
    by_binary_[&found->second->binary] = found->second.get();
  }
  return &found->second->binary;
}

const BinaryTable::Binary* BinaryTable::AddUnreadable(const std::string& build_id, const std::string& path) {
  return Add({IdHasher("unreadable").Add(build_id).Add(path).Finish(), build_id}, path);
}

const BinaryTable::Binary* BinaryTable::Intern(const Mapped& mapped) {
  const std::string build_id = ToHex(mapped.build_id);
  if (!mapped.path.starts_with('/')) return AddUnreadable(build_id, mapped.path);  // "[uprobes]"
  const auto identify = [&](const Result<Fd>& fd) -> std::optional<BinaryIdentity> {
    Result<BinaryIdentity> identity =
        fd.has_value() ? Identify(*fd, mapped.path) : Result<BinaryIdentity>(std::unexpected(fd.error()));
    // The kernel reports no build id of more than 20 bytes.
    const bool same = identity.has_value() && (build_id.empty() || identity->build_id == build_id);
    return same ? std::optional(std::move(*identity)) : std::nullopt;
  };
  // Our own root first: a process that only claims to have mapped a system file gets that file's names for
  // its own frames. Then the process's root and mappings, what its user mapped before, and any other file of
  // ours.
  std::optional<BinaryIdentity> found = identify(OpenRegular(mapped.path));
  const bool is_system = found.has_value() && !build_id.empty() && found->id == SystemBinaryId(build_id);
  const Id128 key =
      IdHasher("mapped").Add(static_cast<uint64_t>(mapped.user_id)).Add(mapped.path).Add(build_id).Finish();
  if (!is_system) {
    auto theirs = identify(OpenRegular(fmt::format("/proc/{}/root{}", mapped.pid, mapped.path)));
    if (!theirs.has_value()) theirs = identify(OpenDeleted(mapped.pid, mapped.path));
    if (theirs.has_value())
      found = std::move(theirs);
    else if (const auto before = last_mapped_.find(key); before != last_mapped_.end())
      return before->second;
  }
  if (!found.has_value()) return AddUnreadable(build_id, mapped.path);
  if (last_mapped_.size() >= kMaxRemembered) last_mapped_.clear();
  return last_mapped_[key] = Add(std::move(*found), mapped.path);
}

const BinaryTable::Binary* BinaryTable::InternFromProcess(int32_t pid, const std::string& path,
                                                          bool outside_root) {
  const bool is_vdso = path == kVdso;
  if (!is_vdso && !path.starts_with('/')) return AddUnreadable("", path);  // "[vsyscall]"
  // Below its root there may be another file with that path.
  Result<Fd> fd = is_vdso        ? OpenVdso()
                  : outside_root ? OpenMapped(pid, path)
                                 : OpenRegular(fmt::format("/proc/{}/root{}", pid, path));
  if (!fd.has_value() && path.ends_with(kDeleted)) fd = OpenDeleted(pid, path);
  if (!fd.has_value()) return AddUnreadable("", path);
  if (is_vdso) return Add(IdentifyVdso(*fd), path);
  Result<BinaryIdentity> identity = Identify(*fd, path);
  return identity.has_value() ? Add(std::move(*identity), path) : AddUnreadable("", path);
}

Result<BinaryIdentity> BinaryTable::Identify(const Fd& file, const std::string& path) {
  struct stat status{};
  if (::fstat(file.get(), &status) != 0) return Fail(ErrnoError(errno, "stat " + path));
  const FileKey key{status.st_dev, status.st_ino, static_cast<uint64_t>(status.st_size),
                    static_cast<uint64_t>(status.st_ctim.tv_sec) * kNanosPerSecond +
                        static_cast<uint64_t>(status.st_ctim.tv_nsec)};
  if (build_ids_.size() >= kMaxRemembered) build_ids_.clear();
  const auto [known, is_new] = build_ids_.try_emplace(key);
  if (is_new) known->second = ReadBuildId(file.get()).value_or("");
  return IdentifyBinary(file, path, known->second);
}

std::optional<Result<ElfFile>> BinaryTable::ReadSymbols(const Binary& binary, const Mapper& mapper) {
  const auto open = [&] { return OpenWithDebugFile(binary, mapper.pid); };
  if (reader_ == nullptr) {
    Result<FileReader::Files> files = open();
    if (!files.has_value()) return Fail(std::move(files).error());
    return ElfFile::LoadWithDebugFile(std::move(files->file), binary.path, std::move(files->debug_file));
  }
  auto answer = reader_->Ask(About(FileRequestKind::kSymbols, binary, mapper), open);
  if (!answer.has_value()) return std::nullopt;
  if (!answer->bytes.has_value()) return Fail(std::move(answer->bytes).error());
  return ElfFile::Unpack(*answer->bytes, std::move(answer->files.file), std::move(answer->files.debug_file));
}

Status BinaryTable::Load(const Binary* binary, const Mapper& mapper) {
  if (!binary->IsFile()) return {};
  Entry& entry = *by_binary_.at(binary);
  entry.used = ++clock_;
  if (entry.file != nullptr || entry.failed_pid == mapper.pid) return {};

  std::optional<Result<ElfFile>> read = ReadSymbols(*binary, mapper);
  entry.pending = !read.has_value();
  if (entry.pending) return {};
  Result<ElfFile>& file = *read;
  if (file.has_value()) {
    bytes_loaded_ += file->bytes();
    ++files_loaded_;
    entry.file = std::make_unique<ElfFile>(std::move(*file));
    KeepWithinBudget(&entry);
    return {};
  }
  const bool told_before = entry.failed_pid != 0;
  entry.failed_pid = mapper.pid;
  if (told_before) return {};
  LogInfo("no symbols for {}: {}", binary->path, file.error().message);
  return Fail(std::move(file).error());
}

// Its own root first; a process that has ended has none, and then the path may still mean the same file here.
Result<Fd> BinaryTable::OpenFile(const Binary& binary, int32_t pid) {
  if (binary.path == kVdso) return OpenVdso();
  const auto check = [&](Result<Fd> fd) -> Result<Fd> {
    const Result<BinaryIdentity> identity = fd.has_value()
                                                ? IdentifyBinary(*fd, binary.path)
                                                : Result<BinaryIdentity>(std::unexpected(fd.error()));
    if (!identity.has_value()) return std::unexpected(Error(identity.error()).With(binary.path));
    if (identity->id != binary.id)
      return Fail(ErrorCode::kNotFound, binary.path + " was replaced by another file");
    return fd;
  };
  Result<Fd> theirs = check(OpenRegular(fmt::format("/proc/{}/root{}", pid, binary.path)));
  if (theirs.has_value()) return theirs;
  if (Result<Fd> ours = check(OpenRegular(binary.path)); ours.has_value()) return ours;
  if (Result<Fd> deleted = check(OpenDeleted(pid, binary.path)); deleted.has_value()) return deleted;
  if (Result<Fd> mapped = check(OpenMapped(pid, binary.path)); mapped.has_value()) return mapped;
  return theirs;
}

std::optional<std::shared_ptr<const PythonInterpreter>> BinaryTable::FindPython(const Binary* binary,
                                                                                const Mapper& mapper) {
  Entry& entry = *by_binary_.at(binary);
  if (!entry.searched_for_python && binary->path != kVdso) {
    bool opened = true;  // or asked before
    const auto open = [&]() -> Result<FileReader::Files> {
      Result<Fd> file = OpenFile(*binary, mapper.pid);
      opened = file.has_value();
      if (!opened) return Fail(std::move(file).error());
      return FileReader::Files{std::move(*file), {}};
    };
    Result<std::optional<PythonInterpreter>> found = std::nullopt;
    if (reader_ == nullptr) {
      const Result<FileReader::Files> files = open();
      if (files.has_value()) found = FindPythonInterpreter(files->file.get(), binary->path);
    } else {
      const auto answer = reader_->Ask(About(FileRequestKind::kPython, *binary, mapper), open);
      if (!answer.has_value()) return std::nullopt;
      found = answer->bytes.has_value()
                  ? UnpackPython(*answer->bytes)
                  : Result<std::optional<PythonInterpreter>>(std::unexpected(answer->bytes.error()));
    }
    if (!opened) return nullptr;  // another process may see it
    entry.searched_for_python = true;
    if (!found.has_value())
      LogWarn("{}", found.error().message);
    else if (found->has_value())
      entry.python = std::make_shared<const PythonInterpreter>(**std::move(found));
  }
  return entry.python;
}

const BinaryTable::Binary* BinaryTable::FindById(const Id128& id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : &found->second->binary;
}

std::optional<Symbol> BinaryTable::Find(const Binary* binary, uint64_t file_offset) {
  const Entry& entry = *by_binary_.at(binary);
  if (entry.file == nullptr) return std::nullopt;
  return entry.file->Find(file_offset);
}

std::optional<uint64_t> BinaryTable::FindFunctionStart(const Binary* binary, uint64_t file_offset) {
  const Entry& entry = *by_binary_.at(binary);
  return entry.file == nullptr ? std::nullopt : entry.file->FindFunctionStart(file_offset);
}

void BinaryTable::ForgetExcept(const std::unordered_set<const Binary*>& used) {
  std::erase_if(by_id_, [&](const auto& known) {
    const Entry& entry = *known.second;
    if (used.contains(&entry.binary) || entry.pending) return false;
    if (entry.file != nullptr) {
      bytes_loaded_ -= entry.file->bytes();
      --files_loaded_;
    }
    by_binary_.erase(&entry.binary);
    return true;
  });
  std::erase_if(last_mapped_, [&](const auto& mapped) { return !by_binary_.contains(mapped.second); });
  build_ids_.clear();  // read again of those that are mapped again
}

// Closes the files used longest ago; they are read again when asked for.
void BinaryTable::KeepWithinBudget(const Entry* keep) {
  while (bytes_loaded_ > kMaxBytesLoaded || files_loaded_ > kMaxFilesLoaded) {
    Entry* oldest = nullptr;
    for (auto& [id, entry] : by_id_)
      if (entry->file != nullptr && entry.get() != keep && (oldest == nullptr || entry->used < oldest->used))
        oldest = entry.get();
    if (oldest == nullptr) return;
    bytes_loaded_ -= oldest->file->bytes();
    oldest->file.reset();
    --files_loaded_;
  }
}

}  // namespace gpusonde::symbols
