// SPDX-License-Identifier: Apache-2.0
#include "agent/file_server.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/regular_file.h"
#include "base/testing/message_sockets.h"
#include "symbols/elf_file.h"
#include "symbols/python_interpreter.h"
#include "unwind/compile.h"

namespace gpusonde::agent {
namespace {

using symbols::FileRequestKind;

constexpr const char* kProgram = "/proc/self/exe";

class FileServerTest : public testing::Test {
 protected:
  void SetUp() override { Start(FilePriority::kNormal); }
  ~FileServerTest() override { Stop(); }

  void Start(FilePriority priority) {
    Fd theirs;
    std::tie(ours_, theirs) = MessageSockets();
    server_ = ::fork();
    if (server_ != 0) return;
    ours_.Close();
    ::_exit(ServeFiles(theirs.get(), priority).has_value() ? 0 : 1);
  }
  void Stop() {
    ours_.Close();
    int status = -1;
    ::waitpid(server_, &status, 0);
    EXPECT_EQ(status, 0);
  }

  Result<std::string> Ask(FileRequestKind kind, const std::string& path) {
    symbols::FileRequest request{.kind = kind,
                                 .name = path,
                                 .file = *Open(path, O_RDONLY),
                                 .debug_file = {},
                                 .answer = Fd(::memfd_create("answer", MFD_CLOEXEC))};
    TRY(symbols::SendFileRequest(ours_.get(), request, Wait::kYes));
    while (true) {
      ASSIGN_OR_RETURN(std::optional<symbols::FileAnswer> answer, symbols::ReceiveFileAnswer(ours_.get()));
      if (!answer.has_value()) {
        ::usleep(1000);
        continue;
      }
      if (answer->error.has_value()) return Fail(std::move(*answer->error));
      return ReadRegular(request.answer, size_t{256} << 20);
    }
  }

  pid_t server_ = 0;
  Fd ours_;
};

TEST_F(FileServerTest, YieldsToOtherProgramsInTheBackgroundOnly) {
  const auto priority = [this] { return ::getpriority(PRIO_PROCESS, static_cast<id_t>(server_)); };
  ASSERT_TRUE(Ask(FileRequestKind::kSymbols, kProgram).has_value());
  EXPECT_EQ(priority(), ::getpriority(PRIO_PROCESS, 0));
  Stop();
  Start(FilePriority::kBackground);
  ASSERT_TRUE(Ask(FileRequestKind::kSymbols, kProgram).has_value());
  EXPECT_EQ(priority(), 10);
}

TEST_F(FileServerTest, ReadsAFileAsThisProcessDoes) {
  const Result<std::string> packed = Ask(FileRequestKind::kSymbols, kProgram);
  ASSERT_TRUE(packed.has_value()) << packed.error().message;
  const symbols::ElfFile here = *symbols::ElfFile::Load(*Open(kProgram, O_RDONLY), kProgram);
  const auto there = symbols::ElfFile::Unpack(*packed, *Open(kProgram, O_RDONLY), {});
  ASSERT_TRUE(there.has_value());
  EXPECT_EQ(there->build_id(), here.build_id());
  EXPECT_EQ(there->bytes(), here.bytes());
  size_t named = 0;
  const uint64_t size = std::filesystem::file_size(kProgram);
  for (uint64_t offset = 0; offset < size; offset += size / 10'000) {
    const auto expected = here.Find(offset);
    const auto found = there->Find(offset);
    ASSERT_EQ(found.has_value(), expected.has_value());
    if (!expected.has_value()) continue;
    EXPECT_EQ(found->name, expected->name);
    EXPECT_EQ(there->FindFunctionStart(offset), here.FindFunctionStart(offset));
    ++named;
  }
  EXPECT_GT(named, 100u);

  unwind::RuleSet rules;
  const unwind::Table table = *unwind::CompileFile(Open(kProgram, O_RDONLY)->get(), kProgram, rules);
  const auto unpacked = unwind::Unpack(Ask(FileRequestKind::kUnwindTable, kProgram).value());
  ASSERT_TRUE(unpacked.has_value());
  EXPECT_EQ(unpacked->table.rows, table.rows);
  EXPECT_EQ(unpacked->table.base, table.base);
  EXPECT_EQ(unpacked->rules.size(), rules.rules().size());
  EXPECT_EQ(symbols::UnpackPython(Ask(FileRequestKind::kPython, kProgram).value()).value(), std::nullopt);
}

TEST_F(FileServerTest, SaysWhyAFileCanNotBeReadAndGoesOn) {
  for (const FileRequestKind kind :
       {FileRequestKind::kSymbols, FileRequestKind::kUnwindTable, FileRequestKind::kPython}) {
    const Result<std::string> answer = Ask(kind, "/etc/passwd");
    ASSERT_FALSE(answer.has_value());
    EXPECT_EQ(answer.error().code, ErrorCode::kCorrupt);
    EXPECT_EQ(answer.error().message, "/etc/passwd is not a 64-bit ELF file");
  }
}

// What another process says is as hostile as the file.
TEST_F(FileServerTest, AnswersThatWereChangedAreRefusedOrHarmless) {
  const std::string symbols = Ask(FileRequestKind::kSymbols, kProgram).value();
  const std::string table = Ask(FileRequestKind::kUnwindTable, kProgram).value();
  for (size_t i = 0; i < 400; ++i) {
    for (const std::string* answer : {&symbols, &table}) {
      std::string changed = *answer;
      const size_t at = i < 200 ? i : (i * 2'654'435'761u) % changed.size();
      changed[at] = static_cast<char>(changed[at] ^ (1 << i % 8));
      const auto file = symbols::ElfFile::Unpack(changed, *Open(kProgram, O_RDONLY), {});
      for (uint64_t offset = 0; file.has_value() && offset < 100'000; offset += 1000)
        (void)file->Find(offset);
      const auto unpacked = unwind::Unpack(changed);
      for (const uint32_t row : unpacked.has_value() ? unpacked->table.rows : std::vector<uint32_t>())
        ASSERT_LT(row >> 16, unpacked->rules.size());
      (void)symbols::UnpackPython(changed);
    }
  }
  for (size_t size = 0; size < table.size(); size += table.size() / 50 + 1) {
    EXPECT_FALSE(unwind::Unpack(table.substr(0, size)).has_value());
    EXPECT_FALSE(symbols::ElfFile::Unpack(symbols.substr(0, size), {}, {}).has_value());
  }
}

}  // namespace
}  // namespace gpusonde::agent
