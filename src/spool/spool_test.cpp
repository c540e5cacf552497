// SPDX-License-Identifier: Apache-2.0
#include "spool/spool.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "base/fd.h"
#include "base/testing/temp_folder.h"
#include "model/tables/meta.h"

namespace {

// Makes fsync fail: the program's own definition takes precedence over libc's.
int fsyncs_until_failure = -1;

}  // namespace

extern "C" int fsync(int fd) {
  const bool fails = fsyncs_until_failure == 0;
  if (fsyncs_until_failure >= 0) --fsyncs_until_failure;
  if (fails) {
    errno = EIO;
    return -1;
  }
  return static_cast<int>(::syscall(SYS_fsync, fd));
}

namespace gpusonde::spool {
namespace {

using testing::HasSubstr;

// A batch that contains its number, padded with incompressible bytes.
model::Batch Numbered(int64_t number, size_t padding = 20) {
  std::mt19937_64 random(static_cast<uint64_t>(number));
  std::string text(padding, '\0');
  for (char& c : text) c = static_cast<char>('!' + random() % 90);
  model::BatchBuilder builder(model::kMeta);
  builder.Append({.key = std::to_string(number), .value = text});
  return builder.Take();
}

int64_t NumberOf(const model::Batch& batch) {
  const auto& key = batch.columns.at(0);
  return std::stoll(std::string(reinterpret_cast<const char*>(key.values.data()), key.ends.at(0)));
}

// Reads everything and checks that frame n has batch n.
Result<ReadSummary> ReadNumbered(const std::string& folder, int64_t after = 0) {
  int64_t next = after + 1;
  return Read(folder, after, [&](int64_t sequence, const model::Batch& batch) -> Status {
    EXPECT_EQ(sequence, next++);
    EXPECT_EQ(NumberOf(batch), sequence);
    return {};
  });
}

void AppendNumbered(Writer& writer, int count, size_t padding = 20) {
  for (int i = 0; i < count; ++i) {
    const auto sequence = writer.Append(Numbered(writer.last_sequence() + 1, padding));
    ASSERT_TRUE(sequence.has_value()) << sequence.error().message;
  }
}

std::vector<std::string> Segments(const std::string& folder) {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) paths.push_back(entry.path());
  std::ranges::sort(paths);
  return paths;
}

// Overwrites in place: ext4 flushes a file that was truncated and rewritten when it is closed, which is slow.
void PutByte(const std::string& path, size_t at, char byte) {
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(static_cast<std::streamoff>(at));
  file.put(byte);
}

class Spool : public testing::Test {
 protected:
  TempFolder folder_;
  std::string path_ = folder_ / "run.spool";
};

TEST_F(Spool, ReadsFramesInTheOrderOfAppending) {
  auto writer = Writer::Open(path_).value();
  AppendNumbered(writer, 10);
  const auto summary = ReadNumbered(path_);
  ASSERT_TRUE(summary.has_value()) << summary.error().message;
  EXPECT_EQ(summary->id, writer.id());
  EXPECT_EQ(summary->frames, 10);
  EXPECT_EQ(summary->last_sequence, 10);
  EXPECT_EQ(summary->torn_bytes, 0);
  EXPECT_EQ(ReadNumbered(path_, 7)->frames, 3);
  EXPECT_EQ(ReadNumbered(path_, 10)->frames, 0);
}

TEST_F(Spool, IsPrivate) {
  const auto writer = Writer::Open(path_).value();
  struct stat status{};
  ASSERT_EQ(::stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
  ASSERT_EQ(::stat(Segments(path_).at(0).c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
}

TEST_F(Spool, ContinuesAfterItsLastFrame) {
  Id128 id;
  {
    auto writer = Writer::Open(path_).value();
    id = writer.id();
    AppendNumbered(writer, 3);
  }
  auto writer = Writer::Open(path_).value();
  EXPECT_EQ(writer.id(), id);
  EXPECT_EQ(writer.last_sequence(), 3);
  AppendNumbered(writer, 2);
  EXPECT_EQ(ReadNumbered(path_)->frames, 5);
}

TEST_F(Spool, HasOneWriter) {
  const auto first = Writer::Open(path_).value();
  const auto second = Writer::Open(path_);
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(second.error().message, HasSubstr(path_));
}

TEST_F(Spool, BeginsSegmentsAndDropsThemWhole) {
  auto writer = Writer::Open(path_, {.segment_bytes = 2000}).value();
  AppendNumbered(writer, 100, 300);
  const size_t segments = Segments(path_).size();
  ASSERT_GT(segments, 10u);
  EXPECT_EQ(ReadNumbered(path_)->frames, 100);
  EXPECT_EQ(ReadNumbered(path_, 50)->frames, 50);
  EXPECT_EQ(writer.first_sequence(), 1);

  ASSERT_TRUE(writer.DropThrough(50).has_value());
  EXPECT_LT(Segments(path_).size(), segments);
  EXPECT_EQ(ReadNumbered(path_, 50)->frames, 50);
  EXPECT_GT(writer.first_sequence(), 1);
  EXPECT_LE(writer.first_sequence(), 51);
  ASSERT_TRUE(writer.DropThrough(1000).has_value());
  EXPECT_EQ(Segments(path_).size(), 1u) << "the one being written stays";
  EXPECT_EQ(Read(path_, 0, [](int64_t, const model::Batch&) { return Status(); })->frames,
            writer.last_sequence() - writer.first_sequence() + 1);
  AppendNumbered(writer, 1);
  EXPECT_EQ(ReadNumbered(path_, 100)->frames, 1);
}

TEST_F(Spool, SkipsNumbers) {
  {
    auto writer = Writer::Open(path_).value();
    AppendNumbered(writer, 3);
    ASSERT_TRUE(writer.SkipTo(100).has_value());
    EXPECT_EQ(writer.first_sequence(), 101);
    EXPECT_EQ(writer.last_sequence(), 100);
    AppendNumbered(writer, 2);
    EXPECT_EQ(ReadNumbered(path_, 100)->frames, 2);
  }
  auto writer = Writer::Open(path_).value();
  AppendNumbered(writer, 1);
  EXPECT_EQ(ReadNumbered(path_, 100)->last_sequence, 103);
}

TEST_F(Spool, ReadingAFolderThatIsNotASpoolIsAnError) {
  EXPECT_EQ(ReadNumbered(path_).error().code, ErrorCode::kNotFound);
  std::filesystem::create_directory(path_);
  EXPECT_EQ(ReadNumbered(path_).error().code, ErrorCode::kNotFound);
  ASSERT_TRUE(
      WriteFileAtomically(path_ + "/0000000000000000001.segment", std::string(1000, 'x')).has_value());
  EXPECT_EQ(ReadNumbered(path_).error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(Writer::Open(path_).error().code, ErrorCode::kCorrupt);
}

TEST_F(Spool, StopsReadingAtAnErrorOfTheVisitor) {
  auto writer = Writer::Open(path_).value();
  AppendNumbered(writer, 3);
  int visited = 0;
  const auto summary = Read(path_, 0, [&](int64_t, const model::Batch&) -> Status {
    ++visited;
    return Fail(ErrorCode::kOutOfSpace, "full");
  });
  EXPECT_EQ(summary.error().code, ErrorCode::kOutOfSpace);
  EXPECT_EQ(visited, 1);
}

TEST_F(Spool, KeepsTheWholeFramesBeforeAnyTruncation) {
  std::vector<size_t> ends;
  {
    auto writer = Writer::Open(path_).value();
    ends.push_back(std::filesystem::file_size(Segments(path_).at(0)));
    for (int i = 0; i < 4; ++i) {
      AppendNumbered(writer, 1);
      ASSERT_TRUE(writer.Sync().has_value());
      ends.push_back(std::filesystem::file_size(Segments(path_).at(0)));
    }
  }
  const std::string segment = Segments(path_).at(0);
  for (size_t size = ends.back(); size >= ends.front(); --size) {
    std::filesystem::resize_file(segment, size);
    const auto frames = std::ranges::count_if(ends, [&](size_t end) { return end <= size; }) - 1;
    const auto summary = ReadNumbered(path_);
    ASSERT_TRUE(summary.has_value()) << size << ": " << summary.error().message;
    EXPECT_EQ(summary->frames, frames) << size;
    EXPECT_EQ(summary->torn_bytes, static_cast<int64_t>(size - ends[static_cast<size_t>(frames)])) << size;
  }
}

TEST_F(Spool, AWriterContinuesAfterTheLastWholeFrame) {
  for (const int64_t cut : {1, 30, 60, 90, 120, 150}) {
    std::filesystem::remove_all(path_);
    {
      auto writer = Writer::Open(path_).value();
      AppendNumbered(writer, 4);
    }
    const std::string segment = Segments(path_).at(0);
    std::filesystem::resize_file(segment, std::filesystem::file_size(segment) - static_cast<uintmax_t>(cut));
    const auto left = ReadNumbered(path_);
    ASSERT_TRUE(left.has_value()) << left.error().message;
    auto writer = Writer::Open(path_).value();
    EXPECT_EQ(writer.last_sequence(), left->frames) << cut;
    AppendNumbered(writer, 2);
    EXPECT_EQ(ReadNumbered(path_)->frames, left->frames + 2) << cut;
    EXPECT_EQ(ReadNumbered(path_)->torn_bytes, 0) << cut;
  }
}

// A broken frame is damage if a later frame shows that it had been on disk.
TEST_F(Spool, AFlippedByteIsNeverTakenForData) {
  std::vector<size_t> ends;
  {
    auto writer = Writer::Open(path_).value();
    for (int i = 0; i < 4; ++i) {
      AppendNumbered(writer, 1);
      ASSERT_TRUE(writer.Sync().has_value());
      ends.push_back(std::filesystem::file_size(Segments(path_).at(0)));
    }
  }
  const std::string segment = Segments(path_).at(0);
  const std::string whole = ReadFile(segment).value();
  std::mt19937_64 random(5);
  for (size_t at = 0; at < whole.size(); ++at) {
    PutByte(segment, at, static_cast<char>(whole[at] ^ static_cast<char>(1 + random() % 255)));
    const auto summary = ReadNumbered(path_);  // checks the batches
    if (at >= ends[2]) {
      ASSERT_TRUE(summary.has_value()) << at << ": " << summary.error().message;
      EXPECT_EQ(summary->frames, 3) << at << ": the last frame may be a torn one";
    } else {
      ASSERT_FALSE(summary.has_value()) << at;
      EXPECT_THAT(summary.error().message, HasSubstr(segment)) << at;
      EXPECT_FALSE(Writer::Open(path_).has_value())
          << "a writer would cut off what is still readable; at " << at;
    }
    PutByte(segment, at, whole[at]);
  }
}

TEST_F(Spool, ADamagedOneIsSetAsideAndANewOneBegun) {
  EXPECT_EQ(SetAsideIfDamaged(path_).value(), std::nullopt) << "there is none";
  Id128 id;
  for (int time = 0; time < 2; ++time) {  // the second one replaces the first
    auto writer = Writer::Open(path_, {.segment_bytes = 1000}).value();
    EXPECT_NE(writer.id(), id);
    id = writer.id();
    AppendNumbered(writer, 20, 300);
    EXPECT_EQ(SetAsideIfDamaged(path_).error().code, ErrorCode::kUnavailable) << "it is in use";
    writer = Writer::Open(folder_ / "other").value();
    EXPECT_EQ(SetAsideIfDamaged(path_).value(), std::nullopt);
    const std::string first = Segments(path_).at(0);
    PutByte(first, 100, static_cast<char>(~ReadFile(first).value()[100]));
    const std::optional<Error> damage = SetAsideIfDamaged(path_).value();
    ASSERT_TRUE(damage.has_value());
    EXPECT_THAT(damage->message, HasSubstr("frame 1 at offset 48 is damaged"));
    EXPECT_FALSE(std::filesystem::exists(path_));
    EXPECT_GT(Segments(DamagedFolderOf(path_)).size(), 5u);
    std::filesystem::remove_all(folder_ / "other");
  }
}

TEST_F(Spool, ATornEndIsNoDamage) {
  {
    auto writer = Writer::Open(path_).value();
    AppendNumbered(writer, 4);
  }
  const std::string segment = Segments(path_).at(0);
  std::filesystem::resize_file(segment, std::filesystem::file_size(segment) - 5);
  EXPECT_EQ(SetAsideIfDamaged(path_).value(), std::nullopt);
  EXPECT_EQ(Writer::Open(path_)->last_sequence(), 3);
}

TEST_F(Spool, GarbageThatWasNeverSyncedIsATornEnd) {
  {
    auto writer = Writer::Open(path_).value();
    AppendNumbered(writer, 2);
    ASSERT_TRUE(writer.Sync().has_value());
    AppendNumbered(writer, 3);
  }
  const std::string segment = Segments(path_).at(0);
  const size_t third = std::filesystem::file_size(segment) * 7 / 12;
  // A power cut may lose any page of what wasn't synced: here, the third frame, and not the fourth and fifth.
  for (size_t i = 0; i < 10; ++i) PutByte(segment, third + i, 0);
  const auto summary = ReadNumbered(path_);
  ASSERT_TRUE(summary.has_value()) << summary.error().message;
  EXPECT_GE(summary->frames, 2);
  EXPECT_LT(summary->frames, 5);
  EXPECT_TRUE(Writer::Open(path_).has_value());
}

TEST_F(Spool, AFailedFsyncRollsBackTheFramesSinceTheLastAndKeepsLaterOnes) {
  auto writer = Writer::Open(path_).value();
  AppendNumbered(writer, 3);
  ASSERT_TRUE(writer.Sync().has_value());
  AppendNumbered(writer, 2);
  std::ifstream before(Segments(path_).at(0), std::ios::binary);
  const std::string with_unsynced{std::istreambuf_iterator<char>(before), {}};
  fsyncs_until_failure = 0;
  EXPECT_EQ(writer.Sync().error().code, ErrorCode::kIo);
  EXPECT_EQ(writer.last_sequence(), 3);
  AppendNumbered(writer, 4, 50);
  ASSERT_TRUE(writer.Sync().has_value());
  EXPECT_EQ(Segments(path_).size(), 2u);
  EXPECT_EQ(ReadNumbered(path_)->frames, 7);
  // The same if the truncation did not reach the disk.
  std::ofstream(Segments(path_).at(0), std::ios::binary) << with_unsynced;
  EXPECT_EQ(ReadNumbered(path_)->frames, 7);
  EXPECT_EQ(ReadNumbered(path_, 5)->frames, 2);
}

TEST_F(Spool, StoreReportsWhichBatchesAFailedFsyncDropped) {
  auto writer = Writer::Open(path_).value();
  const std::vector<model::Batch> first{Numbered(1), Numbered(2)}, second{Numbered(3)};
  EXPECT_THAT(writer.Store(first).sequences, testing::ElementsAre(1, 2));
  fsyncs_until_failure = 0;
  const Writer::Stored lost = writer.Store(second);
  EXPECT_THAT(lost.sequences, testing::ElementsAre(0));
  EXPECT_EQ(lost.lost_rows, 1);
  ASSERT_TRUE(lost.failure.has_value());
  // Beginning the new segment syncs it, which fails as well: still only those rows are dropped.
  fsyncs_until_failure = 0;
  EXPECT_EQ(writer.Store(second).lost_rows, 1);
  const Writer::Stored kept = writer.Store(second);
  EXPECT_THAT(kept.sequences, testing::ElementsAre(3));
  EXPECT_EQ(kept.lost_rows, 0);
  EXPECT_FALSE(kept.failure.has_value());
  EXPECT_EQ(ReadNumbered(path_)->frames, 3);
}

TEST_F(Spool, ReportsWhetherItHasFrames) {
  std::filesystem::create_directory(path_);
  EXPECT_FALSE(HasFrames(path_).value());
  auto writer = Writer::Open(path_).value();
  EXPECT_FALSE(HasFrames(path_).value());
  AppendNumbered(writer, 1);
  EXPECT_TRUE(HasFrames(path_).value());
}

TEST_F(Spool, AMissingSegmentInTheMiddleIsDamage) {
  {
    auto writer = Writer::Open(path_, {.segment_bytes = 1000}).value();
    AppendNumbered(writer, 20, 300);
  }
  const std::vector<std::string> segments = Segments(path_);
  std::filesystem::remove(segments.at(2));
  EXPECT_EQ(ReadNumbered(path_).error().code, ErrorCode::kCorrupt);
}

TEST_F(Spool, CanBeReadWhileItIsWritten) {
  auto writer = Writer::Open(path_, {.segment_bytes = 20'000}).value();
  std::jthread reader([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      const auto summary = ReadNumbered(path_);
      EXPECT_TRUE(summary.has_value()) << summary.error().message;
    }
  });
  for (int i = 0; i < 300; ++i) {
    AppendNumbered(writer, 1, 500);
    if (i % 3 == 0) {
      ASSERT_TRUE(writer.Sync().has_value());
    }
  }
}

// The child appends and syncs, and reports through a pipe what was synced, until it is killed.
void AppendUntilKilled(const std::string& path, int pipe) {
  auto writer = Writer::Open(path, {.segment_bytes = 10'000});
  if (!writer.has_value()) ::_exit(1);
  while (true) {
    for (int i = 0; i < 3; ++i)
      if (!writer->Append(Numbered(writer->last_sequence() + 1, 400)).has_value()) ::_exit(2);
    if (!writer->Sync().has_value()) ::_exit(3);
    const int64_t synced = writer->last_sequence();
    if (::write(pipe, &synced, sizeof synced) != sizeof synced) ::_exit(4);
  }
}

TEST_F(Spool, Kill9LosesNothingThatWasSynced) {
  std::mt19937_64 random(11);
  int64_t synced = 0;
  for (int round = 0; round < 30; ++round) {
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    const Fd out(ends[0]);
    Fd in(ends[1]);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) AppendUntilKilled(path_, in.get());
    in.Close();
    // Some are killed while they open and begin, most while they append, however slow the machine is.
    int64_t said = 0;
    if (round % 4 != 3 && ::read(out.get(), &said, sizeof said) == sizeof said) synced = said;
    ::usleep(static_cast<useconds_t>(random() % 30'000));
    ::kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the child gave up with " << WEXITSTATUS(status);
    while (::read(out.get(), &said, sizeof said) == sizeof said) synced = said;

    const auto summary = ReadNumbered(path_);
    if (!summary.has_value() && summary.error().code == ErrorCode::kNotFound && synced == 0) continue;
    ASSERT_TRUE(summary.has_value()) << summary.error().message;
    EXPECT_GE(summary->last_sequence, synced);
  }
  EXPECT_GT(synced, 0);
}

// Appends until the error that the caller has arranged; then `repair` frees space again.
template <class Repair>
void FillAndGoOn(const std::string& path, Repair&& repair) {
  auto writer = Writer::Open(path).value();
  Result<int64_t> appended = 0;
  while (appended.has_value()) appended = writer.Append(Numbered(writer.last_sequence() + 1, 20'000));
  EXPECT_EQ(appended.error().code, ErrorCode::kOutOfSpace) << appended.error().message;
  EXPECT_THAT(appended.error().message, HasSubstr(path));
  const int64_t written = writer.last_sequence();
  auto summary = ReadNumbered(path);
  ASSERT_TRUE(summary.has_value()) << summary.error().message;
  EXPECT_EQ(summary->frames, written);
  EXPECT_EQ(summary->torn_bytes, 0) << "the failed frame was cut off";

  repair();
  AppendNumbered(writer, 3);
  ASSERT_TRUE(writer.Sync().has_value());
  EXPECT_EQ(ReadNumbered(path)->frames, written + 3);
}

TEST_F(Spool, AFullDiskLeavesWholeFramesAndTheWriterRecovers) {
  if (::geteuid() != 0) GTEST_SKIP() << "mounting a small file system needs root";
  const std::string disk = folder_ / "disk";
  std::filesystem::create_directory(disk);
  if (::mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=512k") != 0)
    GTEST_SKIP() << "mounting is not allowed here: " << std::strerror(errno);
  ASSERT_TRUE(WriteFileAtomically(disk + "/ballast", std::string(100'000, 'x')).has_value());
  FillAndGoOn(disk + "/run.spool", [&] { std::filesystem::remove(disk + "/ballast"); });
  EXPECT_EQ(::umount(disk.c_str()), 0);
}

TEST_F(Spool, AFileSizeLimitIsLikeAFullDisk) {
  ::signal(SIGXFSZ, SIG_IGN);
  struct rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const struct rlimit small{300'000, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  FillAndGoOn(path_, [&] { EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0); });
  ::setrlimit(RLIMIT_FSIZE, &before);
}

}  // namespace
}  // namespace gpusonde::spool
