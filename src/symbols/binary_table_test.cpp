// SPDX-License-Identifier: Apache-2.0
#include "symbols/binary_table.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <system_error>
#include <tuple>

#include "base/fd.h"
#include "base/regular_file.h"
#include "base/testing/descriptors.h"
#include "base/testing/temp_folder.h"
#include "symbols/testing/elf_builder.h"

namespace gpusonde::symbols {
namespace {

std::string OwnPath() { return std::filesystem::read_symlink("/proc/self/exe"); }

std::string FromHex(const std::string& hex) {
  std::string bytes;
  for (size_t i = 0; i < hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return bytes;
}

// As the kernel reports that this process, or one of `pid` and `user`, mapped a file.
const BinaryTable::Binary* InternMapped(BinaryTable& table, const std::string& path,
                                        const std::string& build_id, int32_t pid = ::getpid(),
                                        int32_t user = 0) {
  const std::string bytes = FromHex(build_id);
  const std::vector<uint8_t> id(bytes.begin(), bytes.end());
  return table.Intern({.pid = pid, .user_id = user, .build_id = id, .path = path});
}

constexpr int32_t kGone = 1 << 30;  // no process has this pid
constexpr std::string_view kSystemProgram = "/usr/bin/true";

TEST(BinaryTable, AFileFoundInAProcessAndOneReportedByTheKernelAreTheSame) {
  BinaryTable table;
  for (const std::string& path : {OwnPath(), std::string(kSystemProgram)}) {
    const BinaryTable::Binary* from_process = table.InternFromProcess(::getpid(), path);
    ASSERT_EQ(from_process->build_id.size(), 40u);
    EXPECT_EQ(InternMapped(table, path, from_process->build_id), from_process);
    EXPECT_EQ(InternMapped(table, path, from_process->build_id, kGone), from_process);
  }
  EXPECT_EQ(table.size(), 2u);
}

TEST(BinaryTable, FilesThatNothingUsesAreForgotten) {
  BinaryTable table;
  const BinaryTable::Binary* own = table.InternFromProcess(::getpid(), OwnPath());
  const std::string build_id = own->build_id;
  (void)InternMapped(table, std::string(kSystemProgram), "");
  for (int file = 0; file < 1'000; ++file) (void)InternMapped(table, "/gone/" + std::to_string(file), "ab");
  ASSERT_TRUE(table.Load(own, {.pid = ::getpid()}).has_value());
  EXPECT_EQ(table.size(), 1'002u);
  EXPECT_EQ(table.build_ids(), 2u) << "of files that are there";
  table.ForgetExcept({own});
  EXPECT_EQ(table.size(), 1u);
  EXPECT_EQ(table.build_ids(), 0u);
  EXPECT_EQ(InternMapped(table, OwnPath(), build_id), own);
  table.ForgetExcept({});
  EXPECT_EQ(table.size(), 0u);
  own = InternMapped(table, OwnPath(), build_id);
  EXPECT_EQ(own->build_id, build_id) << "it can come again";
  EXPECT_TRUE(table.Load(own, {.pid = ::getpid()}).has_value());
}

// Each container or virtual environment may have one of its own.
TEST(BinaryTable, AnInterpreterThatNoProcessMapsAnyMoreIsForgotten) {
  const std::string path = "/usr/bin/python3.11";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "Debian 12's python3 is not installed";
  BinaryTable table;
  const BinaryTable::Binary* binary = table.InternFromProcess(::getpid(), path);
  const auto interpreter = table.FindPython(binary, {.pid = ::getpid()});
  ASSERT_TRUE(interpreter.has_value() && *interpreter != nullptr);
  table.ForgetExcept({});
  EXPECT_EQ(table.size(), 0u);
  EXPECT_EQ((*interpreter)->layout->version, 0x030bu) << "whoever holds it keeps it";
}

// A file with this build id and one function, which covers all of its code.
std::string Poisoned(const std::string& build_id) {
  ElfBuilder builder;
  builder.AddSegment({.p_type = PT_LOAD,
                      .p_flags = PF_R | PF_X,
                      .p_offset = 0,
                      .p_vaddr = 0,
                      .p_paddr = 0,
                      .p_filesz = 1 << 20,
                      .p_memsz = 1 << 20,
                      .p_align = 4096});
  builder.AddBuildId(FromHex(build_id));
  std::vector<std::string> names(1000, "poisoned");
  builder.AddFunctions(names, 16);
  return builder.Finish();
}

TEST(BinaryTable, AStrangersFileWithTheBuildIdOfAnotherNamesItsOwnFramesOnly) {
  const std::string system(kSystemProgram);
  const std::string build_id = BinaryTable().InternFromProcess(::getpid(), system)->build_id;
  ASSERT_FALSE(build_id.empty());
  const TempFolder folder;
  const std::string path = folder / "true";
  ASSERT_TRUE(WriteFileAtomically(path, Poisoned(build_id)).has_value());
  ASSERT_TRUE(::getuid() != 0 || ::chown(path.c_str(), 65534, 65534) == 0);
  for (const bool stranger_first : {false, true}) {
    BinaryTable table;
    const auto* first = InternMapped(table, stranger_first ? path : system, build_id);
    const auto* second = InternMapped(table, stranger_first ? system : path, build_id);
    const auto* genuine = stranger_first ? second : first;
    const auto* strangers = stranger_first ? first : second;
    EXPECT_NE(genuine->id, strangers->id);
    EXPECT_EQ(strangers->build_id, build_id);
    ASSERT_TRUE(table.Load(strangers, {.pid = ::getpid()}).has_value());
    ASSERT_TRUE(table.Load(genuine, {.pid = ::getpid()}).has_value());
    ASSERT_TRUE(table.Find(strangers, 4096).has_value());
    EXPECT_EQ(table.Find(strangers, 4096)->name, "poisoned");
    for (uint64_t offset = 0; offset < 40'000; offset += 16) {
      const auto symbol = table.Find(genuine, offset);
      ASSERT_TRUE(!symbol.has_value() || symbol->name != "poisoned") << offset;
    }
  }
}

TEST(BinaryTable, WhatAProcessThatEndedHadMappedIsWhatItsUserMappedThereBefore) {
  const TempFolder folder;
  const std::string path = folder / "program";
  const std::string build_id = "00112233445566778899";
  ASSERT_TRUE(WriteFileAtomically(path, Poisoned(build_id)).has_value());
  BinaryTable table;
  const auto* seen = InternMapped(table, path, build_id, ::getpid(), 1000);
  ::unlink(path.c_str());
  EXPECT_EQ(InternMapped(table, path, build_id, kGone, 1000), seen);
  EXPECT_NE(InternMapped(table, path, build_id, kGone, 1001), seen);
  EXPECT_NE(InternMapped(table, path, "ff112233445566778899", kGone, 1000), seen);
}

TEST(BinaryTable, AFileWithAnotherBuildIdIsNotTakenForTheMappedOne) {
  BinaryTable table;
  const BinaryTable::Binary* binary =
      InternMapped(table, OwnPath(), "0102030000000000000000000000000000000000");
  const Status loaded = table.Load(binary, {.pid = ::getpid()});
  ASSERT_FALSE(loaded.has_value());
  EXPECT_NE(loaded.error().message.find("replaced"), std::string::npos) << loaded.error().message;
  EXPECT_FALSE(table.Find(binary, 4096).has_value());
  EXPECT_TRUE(table.Load(binary, {.pid = ::getpid()}).has_value()) << "told once";
}

TEST(BinaryTable, AMissingFileIsKnownByItsPath) {
  BinaryTable table;
  const BinaryTable::Binary* binary = table.InternFromProcess(::getpid(), "/no/such/file.so (deleted)");
  EXPECT_EQ(binary->name, "file.so");
  EXPECT_EQ(binary->build_id, "");
  EXPECT_FALSE(table.Load(binary, {.pid = ::getpid()}).has_value());
}

// As of a service that runs on after its libraries were upgraded.
TEST(BinaryTable, AFileThatWasReplacedIsReadThroughTheMappingsOfItsProcess) {
  const TempFolder folder;
  const std::string path = folder / "library.so";
  const std::string build_id = "00112233445566778899";
  ASSERT_TRUE(WriteFileAtomically(path, Poisoned(build_id)).has_value());
  // System files are known by their place too.
  ASSERT_TRUE(::getuid() != 0 || ::chown(path.c_str(), 65534, 65534) == 0);
  const Result<Fd> file = OpenRegular(path);
  ASSERT_TRUE(file.has_value());
  void* const mapped = ::mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE, file->get(), 0);
  ASSERT_NE(mapped, MAP_FAILED);
  BinaryTable table;
  const BinaryTable::Binary* seen = table.InternFromProcess(::getpid(), path);
  ASSERT_TRUE(WriteFileAtomically(path, "another file").has_value());
  std::error_code failed;
  const auto any = std::filesystem::directory_iterator("/proc/self/map_files", failed);
  if (!failed) std::ignore = std::filesystem::read_symlink(any->path(), failed);
  if (failed) GTEST_SKIP() << "may not read /proc/self/map_files: " << failed.message();

  const Status loaded = table.Load(seen, {.pid = ::getpid()});
  ASSERT_TRUE(loaded.has_value()) << loaded.error().message;
  EXPECT_EQ(table.Find(seen, 4096)->name, "poisoned");
  EXPECT_EQ(table.InternFromProcess(::getpid(), path + " (deleted)"), seen) << "as in /proc/PID/maps";
  EXPECT_EQ(InternMapped(table, path, build_id), seen);
  ::munmap(mapped, 4096);
  EXPECT_NE(table.InternFromProcess(::getpid(), path + " (deleted)"), seen);
}

// As of a daemon that changes its root once it has begun.
TEST(BinaryTable, AFileOutsideTheRootOfItsProcessIsReadThroughItsMappings) {
  const TempFolder folder;
  const std::string path = folder / "library.so";
  ASSERT_TRUE(WriteFileAtomically(path, Poisoned("00112233445566778899")).has_value());
  const Result<Fd> file = OpenRegular(path);
  ASSERT_TRUE(file.has_value());
  BinaryTable table;
  EXPECT_FALSE(table.Load(table.InternFromProcess(::getpid(), path, true), {.pid = ::getpid()}).has_value())
      << "not mapped: what has this path is another file";
  void* const mapped = ::mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE, file->get(), 0);
  ASSERT_NE(mapped, MAP_FAILED);
  std::error_code failed;
  const auto any = std::filesystem::directory_iterator("/proc/self/map_files", failed);
  if (!failed) std::ignore = std::filesystem::read_symlink(any->path(), failed);
  if (failed) GTEST_SKIP() << "may not read /proc/self/map_files: " << failed.message();
  const BinaryTable::Binary* binary = table.InternFromProcess(::getpid(), path, true);
  ASSERT_TRUE(table.Load(binary, {.pid = ::getpid()}).has_value());
  EXPECT_EQ(table.Find(binary, 4096)->name, "poisoned");
  ::munmap(mapped, 4096);
}

TEST(BinaryTable, CodeThatTheKernelPutsIntoAProcessIsNoUnreadableFile) {
  BinaryTable table;
  const BinaryTable::Binary* page = table.InternFromProcess(::getpid(), "[vsyscall]");
  EXPECT_FALSE(page->IsFile());
  EXPECT_TRUE(table.Load(page, {.pid = ::getpid()}).has_value());
  EXPECT_TRUE(table.InternFromProcess(::getpid(), "[vdso]")->IsFile());
  const BinaryTable::Binary* binary = InternMapped(table, "[uprobes-trampoline]", "");
  EXPECT_TRUE(table.Load(binary, {.pid = ::getpid()}).has_value());
  EXPECT_FALSE(table.Find(binary, 0).has_value());
}

TEST(BinaryTable, TheVdsoHasNames) {
  BinaryTable table;
  const BinaryTable::Binary* vdso = table.InternFromProcess(::getpid(), "[vdso]");
  ASSERT_TRUE(table.Load(vdso, {.pid = ::getpid()}).has_value());
  bool found = false;
  for (uint64_t offset = 0; offset < 8192 && !found; offset += 16)
    if (const auto symbol = table.Find(vdso, offset); symbol.has_value())
      found = symbol->name.find("clock_gettime") != std::string::npos;
  EXPECT_TRUE(found);
}

TEST(BinaryTable, KeepsFewFilesOpenHoweverManyWereLoaded) {
  constexpr int kFiles = 400;
  const TempFolder folder;
  const std::string original = ReadFile("/usr/bin/true").value();
  BinaryTable table;
  const std::string id = FromHex(table.InternFromProcess(::getpid(), "/usr/bin/true")->build_id);
  const size_t at = original.find(id);
  ASSERT_NE(at, std::string::npos);
  const size_t before = OpenDescriptors();
  for (int i = 0; i < kFiles; ++i) {
    std::string program = original;
    std::memcpy(&program[at], &i, sizeof i);  // a build id of its own
    const std::string path = folder / std::to_string(i);
    ASSERT_TRUE(WriteFileAtomically(path, program).has_value());
    const Status loaded = table.Load(table.InternFromProcess(::getpid(), path), {.pid = ::getpid()});
    ASSERT_TRUE(loaded.has_value()) << loaded.error().message;
  }
  EXPECT_EQ(table.size(), size_t{kFiles} + 1);
  EXPECT_LE(OpenDescriptors(), before + 256);
}

TEST(BinaryTable, DevicesAndFifosAreNeverOpened) {
  const std::string path = testing::TempDir() + "gpusonde_fifo_" + std::to_string(::getpid());
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  BinaryTable table;
  EXPECT_FALSE(table.Load(table.InternFromProcess(::getpid(), path), {.pid = ::getpid()}).has_value());
  EXPECT_FALSE(table.Load(table.InternFromProcess(::getpid(), "/dev/zero"), {.pid = ::getpid()}).has_value());
  ::unlink(path.c_str());
}

}  // namespace
}  // namespace gpusonde::symbols
