// SPDX-License-Identifier: Apache-2.0
#include "store/live/live_store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <random>
#include <stop_token>
#include <thread>

#include "base/cancellation.h"
#include "base/fd.h"
#include "base/testing/temp_folder.h"
#include "base/time.h"
#include "model/tables/meta.h"
#include "model/tables/samples.h"
#include "model/tables/threads.h"
#include "spool/spool.h"
#include "store/recordings/recording.h"

namespace gpusonde::store {
namespace {

using std::chrono::days;

constexpr Id128 kLiveSpool{1, 2};
constexpr Day kMonday = std::chrono::sys_days(
    std::chrono::year_month_day(std::chrono::year(2026), std::chrono::month(11), std::chrono::day(23)));

model::Batch Sample(int64_t time_ns) {
  model::BatchBuilder builder(model::kSamples);
  builder.Append({.time_ns = time_ns, .process = {1, 1}, .tid = 7});
  return builder.Take();
}

model::Batch Thread(std::string name) {
  model::BatchBuilder builder(model::kThreads);
  builder.Append({.process = {1, 1}, .tid = 7, .name = std::move(name)});
  return builder.Take();
}

std::string Ask(Store& store, const std::string& sql) {
  auto rows = store.Query(sql);
  if (!rows.has_value()) return rows.error().message;
  const Result<bool> more = (*rows)->Next();
  if (!more.has_value()) return more.error().message;
  return *more ? (*rows)->Display(0) : "";
}

const std::string kTimes = "SELECT string_agg(time_ns::VARCHAR, ',' ORDER BY time_ns) FROM samples";

// An hour of a day after kMonday.
int64_t HourAfterMonday(int day, int64_t hour) {
  return ((kMonday + days(day)).time_since_epoch() / days(1) * 24 + hour) * 3600 * kNanosPerSecond;
}

class Live : public testing::Test {
 protected:
  std::unique_ptr<LiveStore> Open() {
    auto store = LiveStore::Open(path_);
    EXPECT_TRUE(store.has_value()) << store.error().message;
    return store.has_value() ? std::move(*store) : nullptr;
  }

  // By a clock at noon of a day after kMonday.
  std::unique_ptr<LiveStore> OpenOn(int day) {
    const int64_t now_ns = HourAfterMonday(day, 12);
    auto store = LiveStore::Open(path_, {.epoch_now = [now_ns] { return now_ns; }});
    EXPECT_TRUE(store.has_value()) << store.error().message;
    return store.has_value() ? std::move(*store) : nullptr;
  }

  TempFolder folder_;
  std::string path_ = folder_ / "live";
};

TEST(DayOf, IsTheDayOfUtc) {
  EXPECT_EQ(DayOf(0), Day(days(0)));
  EXPECT_EQ(DayOf(-1), Day(days(-1)));
  EXPECT_EQ(DayOf(kNanosPerDay - 1), Day(days(0)));
  EXPECT_EQ(DayOf(kNanosPerDay), Day(days(1)));
}

TEST_F(Live, DaysAreReadAsOneAndEachStandsForItself) {
  {
    auto store = Open();
    ASSERT_TRUE(store->Commit(kMonday, kLiveSpool, 1, {{Thread("old"), Sample(100)}}).has_value());
    ASSERT_TRUE(store->Commit(kMonday + days(1), kLiveSpool, 3, {{Thread("new"), Sample(200)}}).has_value());
    EXPECT_EQ(Ask(*store, kTimes), "100,200");
    EXPECT_EQ(Ask(*store, "SELECT string_agg(name, ',') FROM threads"), "new");
    EXPECT_THAT(store->days(), testing::ElementsAre(kMonday, kMonday + days(1)));
  }
  auto monday = OpenRecordings({path_ + "/2026-11-23.sonde"}).value();
  EXPECT_EQ(Ask(*monday, "SELECT name FROM samples JOIN threads USING (process, tid)"), "old");
}

TEST_F(Live, ReplayingASpoolAddsNothingTwice) {
  {
    auto store = Open();
    EXPECT_EQ(store->CommittedThrough(kLiveSpool), 0);
    ASSERT_TRUE(store->Commit(kMonday, kLiveSpool, 1, {{Sample(1), Sample(2)}}).has_value());
    EXPECT_EQ(store->CommittedThrough(kLiveSpool), 2);
    ASSERT_TRUE(store->Commit(kMonday, kLiveSpool, 1, {{Sample(1), Sample(2), Sample(3)}}).has_value());
    EXPECT_EQ(Ask(*store, kTimes), "1,2,3");
  }
  auto store = Open();
  EXPECT_EQ(store->CommittedThrough(kLiveSpool), 3);
  ASSERT_TRUE(
      store->Commit(kMonday + days(1), kLiveSpool, 2, {{Sample(2), Sample(3), Sample(4)}}).has_value());
  ASSERT_TRUE(store->Commit(kMonday + days(1), Id128{9, 9}, 1, {{Sample(5)}}).has_value()) << "another spool";
  EXPECT_EQ(Ask(*store, kTimes), "1,2,3,4,5");
}

TEST_F(Live, AStoreWithClosedFilesTakesNoMemoryAndGoesOnWhenItIsUsed) {
  auto store = LiveStore::Open(path_, {.one_of_many = true}).value();
  ASSERT_TRUE(store->Commit(kMonday, kLiveSpool, 1, {{Thread("old"), Sample(1)}}).has_value());
  EXPECT_GT(store->MemoryBytes(), 0);
  {
    const auto rows = store->Query("SELECT time_ns FROM samples").value();
    EXPECT_FALSE(store->CloseFiles()) << "a query reads it";
    ASSERT_TRUE(rows->Next().value());
    EXPECT_EQ(rows->Int64(0), 1);
  }
  store->names().stacks.Keep({{Id128{4, 1}, std::make_shared<const std::vector<Id128>>(10)}}, 0);
  EXPECT_GT(store->names().stacks.bytes(), 0u);
  ASSERT_TRUE(store->CloseFiles());
  EXPECT_EQ(store->MemoryBytes(), 0);
  EXPECT_EQ(store->names().stacks.bytes(), 0u);
  EXPECT_FALSE(std::filesystem::exists(path_ + "/2026-11-23.sonde.wal")) << "its log is in the file";
  EXPECT_EQ(store->CommittedThrough(kLiveSpool), 2);
  EXPECT_EQ(Ask(*store, kTimes), "1");
  ASSERT_TRUE(store->CloseFiles());
  ASSERT_TRUE(store->Commit(kMonday, kLiveSpool, 1, {{Thread("old"), Sample(1), Sample(2)}}).has_value());
  EXPECT_EQ(Ask(*store, kTimes), "1,2") << "nothing comes twice";
  // Frames that are held are committed first.
  ASSERT_TRUE(store->Hold(kMonday, kLiveSpool, 4, {Sample(3)}).has_value());
  ASSERT_TRUE(store->CloseFiles());
  EXPECT_EQ(store->CommittedThrough(kLiveSpool), 4);
  EXPECT_EQ(Ask(*store, kTimes), "1,2,3");
}

TEST_F(Live, HeldFramesAreInEveryAnswerAndDurableOnceReportedCommitted) {
  {
    auto store = Open();
    ASSERT_TRUE(store->Hold(kMonday, kLiveSpool, 1, {Sample(1), Sample(2)}).has_value());
    ASSERT_TRUE(store->Hold(kMonday, kLiveSpool, 3, {Sample(3)}).has_value());
    EXPECT_EQ(store->CommittedThrough(kLiveSpool), 0);
    EXPECT_EQ(Ask(*store, kTimes), "1,2,3");
    EXPECT_EQ(store->CommittedThrough(kLiveSpool), 3);
    ASSERT_TRUE(store->Hold(kMonday, kLiveSpool, 4, {Sample(4)}).has_value());
    ASSERT_TRUE(store->Hold(kMonday + days(1), kLiveSpool, 5, {Sample(5)}).has_value());
    EXPECT_EQ(store->CommittedThrough(kLiveSpool), 4) << "a day's rows go to their day";
    ASSERT_TRUE(store->CommitHeld().has_value());
    EXPECT_EQ(store->CommittedThrough(kLiveSpool), 5);
    ASSERT_TRUE(store->Hold(kMonday + days(1), kLiveSpool, 6, {Sample(6)}).has_value());
  }
  auto store = Open();
  EXPECT_EQ(store->CommittedThrough(kLiveSpool), 5) << "its spool has the sixth";
  EXPECT_EQ(Ask(*store, kTimes), "1,2,3,4,5");
  ASSERT_TRUE(store->Hold(kMonday + days(1), kLiveSpool, 5, {Sample(5), Sample(6)}).has_value());
  EXPECT_EQ(Ask(*store, kTimes), "1,2,3,4,5,6");
}

TEST_F(Live, ACancelledQueryEndsAndWhatWasHeldIsCommittedBeforeIt) {
  const auto store = Open();
  ASSERT_TRUE(store->Hold(kMonday, kLiveSpool, 1, {Sample(10)}).has_value());
  std::stop_source gone;
  {
    const Cancellation cancellation(gone.get_token());
    std::jthread client([&] { gone.request_stop(); });
    EXPECT_EQ(Ask(*store, "SELECT sum(range) FROM range(1000000000000)"), "the query was interrupted");
    EXPECT_EQ(store->CommittedThrough(kLiveSpool), 1);
    client.join();
    ASSERT_TRUE(store->Hold(kMonday, kLiveSpool, 2, {Sample(20)}).has_value());
    Ask(*store, kTimes);
    EXPECT_EQ(store->CommittedThrough(kLiveSpool), 2);
  }
  EXPECT_EQ(Ask(*store, kTimes), "10,20");
}

TEST_F(Live, TheRevisionChangesWithWhatQueriesAnswer) {
  auto store = Open();
  const uint64_t empty = store->revision();
  EXPECT_EQ(store->revision(), empty);
  ASSERT_TRUE(store->Hold(kMonday, kLiveSpool, 1, {Sample(1)}).has_value());
  const uint64_t held = store->revision();
  EXPECT_NE(held, empty) << "a query would answer with what is held";
  EXPECT_EQ(store->CommittedThrough(kLiveSpool), 1);
  EXPECT_EQ(Ask(*store, kTimes), "1");
  EXPECT_EQ(store->revision(), held) << "asking changes nothing";
  ASSERT_TRUE(store->Commit(kMonday + days(1), kLiveSpool, 2, {{Sample(2)}}).has_value());
  const uint64_t committed = store->revision();
  EXPECT_NE(committed, held);
  ASSERT_EQ(store->Retain(1, INT64_MAX).value(), 1);
  EXPECT_NE(store->revision(), committed) << "a day went";
}

TEST_F(Live, FailedFramesAreKeptAndQueriesContinue) {
  auto store = Open();
  ASSERT_TRUE(store->Commit(kMonday, kLiveSpool, 1, {{Sample(1)}}).has_value());
  model::Batch broken = Sample(2);
  broken.columns[0].values.pop_back();
  ASSERT_TRUE(store->Hold(kMonday, kLiveSpool, 2, {broken}).has_value());
  EXPECT_EQ(Ask(*store, kTimes), "1");
  EXPECT_EQ(store->CommitHeld().error().code, ErrorCode::kCorrupt);
  EXPECT_FALSE(store->Hold(kMonday + days(1), kLiveSpool, 3, {Sample(3)}).has_value())
      << "not before the second";
  EXPECT_EQ(store->CommittedThrough(kLiveSpool), 1);
}

TEST_F(Live, ACommitIsWholeOrNothing) {
  auto store = Open();
  model::Batch broken = Sample(2);
  broken.columns[0].values.pop_back();
  EXPECT_EQ(store->Commit(kMonday, kLiveSpool, 1, {{Sample(1), broken}}).error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(store->CommittedThrough(kLiveSpool), 0);
  EXPECT_EQ(Ask(*store, "SELECT count(*) FROM samples"), "0");
  ASSERT_TRUE(store->Commit(kMonday, kLiveSpool, 1, {{Sample(1)}}).has_value());
  EXPECT_EQ(Ask(*store, "SELECT count(*) FROM samples"), "1");
}

TEST_F(Live, AppendGoesToThePresentDay) {
  auto store = Open();
  ASSERT_TRUE(store->Append({{Sample(1)}}).has_value());
  ASSERT_EQ(store->days().size(), 1u);
  EXPECT_LE(DayOf(EpochNow()) - store->days()[0], days(1));
}

TEST_F(Live, ATimeInTheNewestDaysIsReadInThemAlone) {
  const auto at = HourAfterMonday;
  auto store = OpenOn(4);
  ASSERT_TRUE(store->Commit(kMonday, kLiveSpool, 1, {{Thread("old"), Sample(at(0, 12))}}).has_value());
  ASSERT_TRUE(
      store->Commit(kMonday + days(1), kLiveSpool, 3, {{Thread("new"), Sample(at(1, 12))}}).has_value());
  EXPECT_EQ(&store->Within({at(1, 12), at(1, 13)}), store.get()) << "both days are the newest";
  ASSERT_TRUE(store->Commit(kMonday + days(3), kLiveSpool, 5, {{Sample(at(3, 12))}}).has_value());

  Store& recent = store->Within({at(3, 11), INT64_MAX});
  ASSERT_NE(&recent, store.get());
  EXPECT_EQ(Ask(recent, kTimes), fmt::format("{},{}", at(1, 12), at(3, 12)));
  EXPECT_EQ(Ask(recent, "SELECT string_agg(name, ',') FROM threads"), "new");
  EXPECT_EQ(Ask(recent, "SELECT count(*) FROM raw.threads"), "1");
  EXPECT_EQ(&recent.names(), &store->names());
  EXPECT_EQ(&store->Within({at(1, 2), at(1, 3)}), &recent);
  EXPECT_EQ(&store->Within({at(1, 0), at(1, 3)}), store.get()) << "what led to it may be in the day before";
  EXPECT_EQ(&store->Within({INT64_MIN, INT64_MAX}), store.get());

  ASSERT_TRUE(store->Hold(kMonday + days(3), kLiveSpool, 6, {Sample(at(3, 13))}).has_value());
  EXPECT_EQ(Ask(recent, "SELECT max(time_ns) FROM samples"), fmt::format("{}", at(3, 13)));
  ASSERT_TRUE(store->Commit(kMonday + days(4), kLiveSpool, 7, {{Sample(at(4, 1))}}).has_value());
  EXPECT_EQ(Ask(recent, kTimes), fmt::format("{},{},{}", at(3, 12), at(3, 13), at(4, 1))) << "a day later";
  EXPECT_EQ(&store->Within({at(3, 0), at(3, 1)}), store.get());
  ASSERT_EQ(store->Retain(3, INT64_MAX).value(), 2);
  EXPECT_EQ(&store->Within({at(4, 1), INT64_MAX}), store.get()) << "no other days are left";
  EXPECT_EQ(Ask(recent, "SELECT count(*) FROM samples"), "3");
}

TEST_F(Live, DaysOfAClockThatWasAheadDoNotHideTheNewestOnes) {
  auto store = OpenOn(2);
  for (const int day : {0, 1, 2, 400, 401})
    ASSERT_TRUE(store->Commit(kMonday + days(day), kLiveSpool, day + 1, {{Sample(HourAfterMonday(day, 12))}})
                    .has_value());
  Store& recent = store->Within({HourAfterMonday(2, 11), INT64_MAX});
  ASSERT_NE(&recent, store.get());
  EXPECT_EQ(Ask(recent, "SELECT count(*) FROM samples"), "4") << "all but the first";
  EXPECT_EQ(&store->Within({HourAfterMonday(1, 0), INT64_MAX}), store.get());
  store.reset();
  store = OpenOn(-1);  // a clock that is behind
  EXPECT_EQ(&store->Within({HourAfterMonday(2, 11), INT64_MAX}), store.get());
  EXPECT_NE(&store->Within({HourAfterMonday(401, 11), INT64_MAX}), store.get());
}

TEST_F(Live, ARunningQuerySeesADeletedDay) {
  auto store = Open();
  model::BatchBuilder samples(model::kSamples);
  for (int i = 0; i < 100'000; ++i) samples.Append({.time_ns = i});
  ASSERT_TRUE(store->Commit(kMonday, kLiveSpool, 1, {{samples.Take()}}).has_value());
  ASSERT_TRUE(store->Commit(kMonday + days(1), kLiveSpool, 2, {{Sample(1)}}).has_value());
  auto rows = store->Query("SELECT time_ns FROM samples").value();
  ASSERT_TRUE(rows->Next().value());
  ASSERT_EQ(store->Retain(1, INT64_MAX).value(), 1);
  int64_t count = 1;
  while (rows->Next().value()) ++count;
  EXPECT_EQ(count, 100'001);
  rows.reset();
  EXPECT_EQ(Ask(*store, "SELECT count(*) FROM samples"), "1");
}

TEST_F(Live, TheFolderBelongsToOneStore) {
  auto store = Open();
  const auto second = LiveStore::Open(path_);
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().code, ErrorCode::kUnavailable);
}

TEST_F(Live, ADamagedDayIsSetAsideAndTheOthersAreRead) {
  {
    auto store = Open();
    for (const int day : {0, 1})
      ASSERT_TRUE(store->Commit(kMonday + days(day), kLiveSpool, day + 1, {{Sample(day)}}).has_value());
  }
  const std::string monday = path_ + "/2026-11-23.sonde";
  std::filesystem::resize_file(monday, std::filesystem::file_size(monday) / 2);
  auto store = Open();
  ASSERT_NE(store, nullptr);
  EXPECT_EQ(Ask(*store, kTimes), "1");
  ASSERT_EQ(store->notices().size(), 1u);
  EXPECT_THAT(store->notices()[0], testing::HasSubstr("2026-11-23"));
  EXPECT_TRUE(std::filesystem::exists(monday + ".damaged"));
  ASSERT_TRUE(store->Commit(kMonday, kLiveSpool, 3, {{Sample(0)}}).has_value())
      << "the day can be filled again";
  EXPECT_FALSE(store->TakeGap()) << "Tuesday has the frame before";
  ASSERT_TRUE(store->Commit(kMonday, kLiveSpool, 5, {{Sample(0)}}).has_value());
  EXPECT_TRUE(store->TakeGap());
  EXPECT_FALSE(store->TakeGap()) << "said once";
}

TEST_F(Live, ANewerDayIsLeftAlone) {
  {
    auto store = Open();
    model::BatchBuilder meta(model::kMeta);
    meta.Append({"schema_version", "999"});
    ASSERT_TRUE(store->Commit(kMonday, kLiveSpool, 1, {{meta.Take()}}).has_value());
  }
  const auto store = LiveStore::Open(path_);
  ASSERT_FALSE(store.has_value());
  EXPECT_EQ(store.error().code, ErrorCode::kTooNew);
  EXPECT_TRUE(std::filesystem::exists(path_ + "/2026-11-23.sonde"));
}

// A process that has a file open for writing, as another DuckDB would.
class LockingProcess {
 public:
  explicit LockingProcess(const std::string& path) {
    int ready[2];
    if (::pipe(ready) != 0) return;
    // Without the handlers of fork(): DuckDB's allocator takes more locks in them than ThreadSanitizer
    // follows.
    pid_ = ::_Fork();
    if (pid_ == 0) {
      struct flock lock{};
      lock.l_type = F_WRLCK;
      const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
      const char locked = ::fcntl(file, F_SETLK, &lock) == 0 ? 1 : 0;
      if (::write(ready[1], &locked, 1) != 1) ::_exit(1);
      for (;;) ::pause();
    }
    char locked = 0;
    is_locking_ = ::read(ready[0], &locked, 1) == 1 && locked == 1;
    ::close(ready[0]);
    ::close(ready[1]);
  }
  ~LockingProcess() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  LockingProcess(const LockingProcess&) = delete;
  LockingProcess& operator=(const LockingProcess&) = delete;

  bool is_locking() const { return is_locking_; }

 private:
  pid_t pid_ = -1;
  bool is_locking_ = false;
};

TEST_F(Live, AFileThatAnotherProcessHasOpenKeepsItsRows) {
  auto store = Open();
  ASSERT_TRUE(store->Commit(kMonday, kLiveSpool, 1, {{Sample(1)}}).has_value());
  ASSERT_TRUE(store->CloseFiles());
  {
    const LockingProcess other(path_ + "/2026-11-23.sonde");
    ASSERT_TRUE(other.is_locking());
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(store->Commit(kMonday, kLiveSpool, 2, {{Sample(2)}}).error().code, ErrorCode::kUnavailable);
      EXPECT_THAT(Ask(*store, kTimes), testing::HasSubstr("in use by another process"));
    }
  }
  ASSERT_TRUE(store->Commit(kMonday, kLiveSpool, 2, {{Sample(2)}}).has_value());
  EXPECT_EQ(Ask(*store, kTimes), "1,2");
}

TEST_F(Live, QueriesReachNoOtherFiles) {
  auto store = Open();
  EXPECT_FALSE(store->Query("SELECT * FROM read_text('/etc/passwd')").has_value());
  EXPECT_FALSE(store->Query("DELETE FROM raw.samples").has_value());
}

TEST_F(Live, QueriesRunBesideCommitsAndNewDays) {
  auto store = Open();
  std::jthread reader([&](const std::stop_token& stop) {
    int64_t seen = 0;
    while (!stop.stop_requested()) {
      const int64_t count = std::stoll(Ask(*store, "SELECT count(*) FROM samples"));
      EXPECT_GE(count, seen);
      seen = count;
    }
  });
  for (int i = 0; i < 40; ++i)
    ASSERT_TRUE(store->Commit(kMonday + days(i / 10), kLiveSpool, i + 1, {{Sample(i)}}).has_value());
}

TEST_F(Live, FilesAreClosedBesideQueriesAndCommits) {
  int commits = 0;
  auto store = Open();
  std::atomic<int> closed = 0;
  {
    std::jthread closer([&](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        if (store->IsOpen() && store->CloseFiles()) ++closed;
        std::this_thread::yield();  // the others need the store's lock
      }
    });
    std::jthread reader([&](const std::stop_token& stop) {
      int64_t seen = 0;
      while (!stop.stop_requested()) {
        const int64_t count = std::stoll(Ask(*store, "SELECT count(*) FROM samples"));
        EXPECT_GE(count, seen);
        seen = count;
      }
    });
    for (; commits < 10 || closed < 3; ++commits) {
      const Day day = kMonday + days(commits % 2);
      ASSERT_TRUE(store->Commit(day, kLiveSpool, commits + 1, {{Sample(commits)}}).has_value());
    }
  }
  EXPECT_EQ(Ask(*store, "SELECT count(*) FROM samples"), std::to_string(commits));
}

// The child appends to a spool, syncs, commits, and tells what it has committed, until it is killed. It
// begins by replaying what the spool has that the store lacks, as `gpusonde up` does. Days last ten frames.
void IngestUntilKilled(const std::string& folder, int pipe) {
  auto writer = spool::Writer::Open(folder + "/spool");
  auto store = LiveStore::Open(folder + "/live");
  if (!writer.has_value() || !store.has_value()) ::_exit(1);
  const auto commit = [&](int64_t sequence, const model::Batch& batch) {
    return (*store)->Commit(kMonday + days(sequence / 10), writer->id(), sequence, {&batch, 1});
  };
  const auto replayed = spool::Read(folder + "/spool", (*store)->CommittedThrough(writer->id()), commit);
  if (!replayed.has_value()) ::_exit(2);
  while (true) {
    const int64_t next = writer->last_sequence() + 1;
    const model::Batch batch = Sample(next);
    if (!writer->Append(batch).has_value() || !writer->Sync().has_value()) ::_exit(3);
    if (!commit(next, batch).has_value()) ::_exit(4);
    if (::write(pipe, &next, sizeof next) != sizeof next) ::_exit(5);
  }
}

TEST_F(Live, Kill9LosesNothingAndAddsNothingTwice) {
  std::mt19937_64 random(17);
  int64_t committed = 0;
  for (int round = 0; round < 12; ++round) {
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    const Fd out(ends[0]);
    Fd in(ends[1]);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) IngestUntilKilled(folder_.path(), in.get());
    in.Close();
    // Some are killed while they open and replay, most while they ingest.
    int64_t said = 0;
    if (round % 4 != 3 && ::read(out.get(), &said, sizeof said) == sizeof said) committed = said;
    ::usleep(static_cast<useconds_t>(random() % 150'000));
    ::kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the child gave up with " << WEXITSTATUS(status);
    while (::read(out.get(), &said, sizeof said) == sizeof said) committed = said;
  }
  ASSERT_GT(committed, 0);
  auto store = Open();
  ASSERT_NE(store, nullptr);
  EXPECT_TRUE(store->notices().empty());
  auto rows = store
                  ->Query(
                      "SELECT count(*), count(DISTINCT time_ns), max(time_ns), "
                      "(SELECT max(sequence) FROM batches) FROM samples")
                  .value();
  ASSERT_TRUE(rows->Next().value());
  EXPECT_GE(rows->Int64(2), committed) << "something committed is gone";
  EXPECT_EQ(rows->Int64(0), rows->Int64(2)) << "samples are numbered from 1: one is missing or there twice";
  EXPECT_EQ(rows->Int64(1), rows->Int64(0));
  EXPECT_EQ(rows->Int64(3), rows->Int64(2));
}

// A disk of its own that can be filled.
class FullDisk : public Live {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "mounting a small file system needs root";
    std::filesystem::create_directory(disk_);
    if (::mount("tmpfs", disk_.c_str(), "tmpfs", 0, "size=48m") != 0)
      GTEST_SKIP() << "mounting is not allowed here: " << std::strerror(errno);
    is_mounted_ = true;
  }
  void TearDown() override {
    if (is_mounted_) ::umount2(disk_.c_str(), MNT_DETACH);
  }

  // Leaves about `free_bytes`.
  void Fill(uintmax_t free_bytes) const {
    const uintmax_t available = std::filesystem::space(disk_).available;
    if (available <= free_bytes) return;
    const Fd ballast = gpusonde::Open(Ballast(), O_WRONLY | O_CREAT).value();
    ASSERT_EQ(::posix_fallocate(ballast.get(), 0, static_cast<off_t>(available - free_bytes)), 0);
  }
  void MakeRoom() const { std::filesystem::remove(Ballast()); }
  std::string Ballast() const { return disk_ + "/ballast"; }

  // Samples that compress badly; the times are sequence * kRows, sequence * kRows + 1, …
  static constexpr int64_t kRows = 5000;
  static model::Batch Samples(int64_t sequence) {
    std::mt19937_64 random(static_cast<uint64_t>(sequence));
    model::BatchBuilder builder(model::kSamples);
    for (int64_t i = 0; i < kRows; ++i)
      builder.Append({.time_ns = sequence * kRows + i,
                      .process = {random(), random()},
                      .tid = static_cast<int32_t>(random() >> 33),
                      .stack = Id128{random(), random()}});
    return builder.Take();
  }
  // What an agent does: the next frame, until one fails.
  static Status CommitUntilItFails(LiveStore& store, int limit) {
    for (int i = 0; i < limit; ++i) {
      const int64_t next = store.CommittedThrough(kLiveSpool) + 1;
      TRY(store.Commit(kMonday, kLiveSpool, next, {{Samples(next)}}));
    }
    return {};
  }
  static void ExpectWhole(LiveStore& store) {
    const auto rows = store.Query("SELECT count(*), count(DISTINCT time_ns), max(time_ns) FROM samples");
    ASSERT_TRUE(rows.has_value()) << rows.error().message;
    ASSERT_TRUE((*rows)->Next().value());
    const int64_t committed = store.CommittedThrough(kLiveSpool);
    EXPECT_EQ((*rows)->Int64(0), committed * kRows);
    EXPECT_EQ((*rows)->Int64(1), committed * kRows);
    EXPECT_EQ((*rows)->Int64(2), (committed + 1) * kRows - 1);
  }

  std::string disk_ = folder_ / "disk";
  bool is_mounted_ = false;
};

TEST_F(FullDisk, RecoversRepeatedlyWithoutLossOrDuplicates) {
  const auto store = LiveStore::Open(disk_ + "/live").value();
  int failures = 0;
  for (int round = 0; round < 8; ++round) {
    ASSERT_TRUE(CommitUntilItFails(*store, 4).has_value()) << round;
    Fill(uintmax_t{64} << (10 + round % 5));  // 64 KiB to 1 MiB
    if (const Status failed = CommitUntilItFails(*store, 30); !failed.has_value()) {
      ++failures;
      EXPECT_EQ(failed.error().code, ErrorCode::kOutOfSpace) << failed.error().message;
      EXPECT_EQ(store->notices().size(), 1u);
    }
    static_cast<void>(store->Query("SELECT count(*) FROM samples"));  // an answer or an error, and no crash
    MakeRoom();
    ASSERT_TRUE(CommitUntilItFails(*store, 1).has_value()) << round;
    EXPECT_TRUE(store->notices().empty());
    ExpectWhole(*store);
  }
  EXPECT_GT(failures, 4);
}

TEST_F(FullDisk, WritingStopsAtTheReserveAndQueriesAreAnswered) {
  auto store = LiveStore::Open(disk_ + "/live", {.min_free_bytes = int64_t{16} << 20}).value();
  ASSERT_TRUE(CommitUntilItFails(*store, 2).has_value());
  Fill(uintmax_t{12} << 20);
  const Status refused = CommitUntilItFails(*store, 1);
  ASSERT_FALSE(refused.has_value());
  EXPECT_THAT(refused.error().message, testing::HasSubstr("16 MB are kept in reserve"));
  ExpectWhole(*store);
  ASSERT_EQ(store->notices().size(), 1u);
  EXPECT_THAT(store->notices()[0], testing::HasSubstr("Nothing has been stored since"));
  store.reset();
  store = LiveStore::Open(disk_ + "/live", {.min_free_bytes = int64_t{16} << 20}).value();
  ExpectWhole(*store);  // what is there is answered, also by one that starts on such a disk
  MakeRoom();
  ASSERT_TRUE(CommitUntilItFails(*store, 2).has_value());
  ExpectWhole(*store);
  EXPECT_TRUE(store->notices().empty());
}

}  // namespace
}  // namespace gpusonde::store
