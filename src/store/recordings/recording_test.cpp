// SPDX-License-Identifier: Apache-2.0
#include "store/recordings/recording.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <random>

#include "base/fd.h"
#include "base/testing/temp_folder.h"
#include "model/schema.h"
#include "model/tables/meta.h"
#include "model/tables/processes.h"
#include "model/tables/samples.h"
#include "model/tables/threads.h"
#include "model/testing/random_batch.h"
#include "spool/spool.h"
#include "store/duckdb/connection.h"
#include "store/memory_limit.h"
#include "store/recordings/attach.h"

namespace gpusonde::store {
namespace {

using model::Batch;
using model::BatchBuilder;

Batch Samples(int64_t first_ns, int count) {
  BatchBuilder builder(model::kSamples);
  for (int i = 0; i < count; ++i) builder.Append({.time_ns = first_ns + i, .process = {1, 1}, .tid = 7});
  return builder.Take();
}

Batch OneThread(std::string name) {
  BatchBuilder builder(model::kThreads);
  builder.Append({.process = {1, 1}, .tid = 7, .name = std::move(name)});
  return builder.Take();
}

void WriteSpool(const std::string& folder, std::span<const Batch> batches) {
  auto writer = spool::Writer::Open(folder).value();
  for (const Batch& batch : batches) ASSERT_TRUE(writer.Append(batch).has_value());
  ASSERT_TRUE(writer.Sync().has_value());
}

// First column of the first row, as text; or the error.
std::string Ask(Store& store, const std::string& sql) {
  auto rows = store.Query(sql);
  if (!rows.has_value()) return rows.error().message;
  const Result<bool> more = (*rows)->Next();
  if (!more.has_value()) return more.error().message;
  return *more ? (*rows)->Display(0) : "";
}

class Recording : public testing::Test {
 protected:
  // A recording of three frames at folder_ / name.
  std::string Write(const std::string& name, int64_t first_ns = 100, std::string thread = "last") {
    const std::string spool = folder_ / (name + ".spool");
    WriteSpool(spool, {{OneThread("first"), Samples(first_ns, 3), OneThread(std::move(thread))}});
    const auto frames = WriteRecording(spool, folder_ / name);
    EXPECT_TRUE(frames.has_value()) << frames.error().message;
    EXPECT_EQ(frames.value_or(0), 3);
    return folder_ / name;
  }

  TempFolder folder_;
};

TEST_F(Recording, HoldsWhatTheSpoolHeldWithTheLastRowPerKey) {
  const std::string path = Write("run.sonde");
  auto store = OpenRecordings({path}).value();
  EXPECT_EQ(Ask(*store, "SELECT string_agg(time_ns::VARCHAR, ',') FROM samples"), "100,101,102");
  EXPECT_EQ(Ask(*store, "SELECT string_agg(name, ',') FROM threads"), "last");
  EXPECT_EQ(Ask(*store, "SELECT value FROM meta WHERE key = 'schema_version'"),
            std::to_string(model::kSchemaVersion));
  EXPECT_THAT(Ask(*store, "SELECT value FROM meta WHERE key = 'created_by'"),
              testing::StartsWith("gpusonde "));
  EXPECT_FALSE(std::filesystem::exists(path + ".tmp"));
  EXPECT_FALSE(std::filesystem::exists(path + ".tmp.wal"));
  EXPECT_FALSE(std::filesystem::exists(path + ".wal"));
}

TEST_F(Recording, MayBeCompletedWithWhatFollowsFromIt) {
  const std::string path = folder_ / "run.sonde";
  const auto produce = [](const BatchSink& sink) { return sink(Samples(100, 3)); };
  std::string seen;
  const Status written = WriteRecording(path, {}, produce, [&](Store& store) {
    seen = Ask(store, "SELECT count(*) FROM samples");
    return store.Append({{OneThread("found")}});
  });
  ASSERT_TRUE(written.has_value()) << written.error().message;
  EXPECT_EQ(seen, "3");
  EXPECT_EQ(Ask(*OpenRecordings({path}).value(), "SELECT name FROM threads"), "found");
  const Status refused =
      WriteRecording(path, {}, produce, [](Store&) { return Fail(ErrorCode::kIo, "no room"); });
  EXPECT_EQ(refused.error().message, "no room");
  EXPECT_EQ(Ask(*OpenRecordings({path}).value(), "SELECT name FROM threads"), "found") << "it stays";
}

TEST_F(Recording, AFileWithTheNameOfTheTemporaryOneStays) {
  ASSERT_TRUE(WriteFileAtomically(folder_ / "run.sonde.tmp", "of the user").has_value());
  const std::string path = Write("run.sonde");
  EXPECT_EQ(Ask(*OpenRecordings({path}).value(), "SELECT count(*) FROM samples"), "3");
  EXPECT_EQ(ReadFile(path + ".tmp").value(), "of the user");
  EXPECT_FALSE(std::filesystem::exists(path + ".tmp2"));
}

TEST_F(Recording, WhatAKilledProcessLeftIsReplaced) {
  std::filesystem::copy(Write("old.sonde"), folder_ / "run.sonde.tmp");
  const std::string path = Write("run.sonde");
  EXPECT_FALSE(std::filesystem::exists(path + ".tmp"));
}

TEST_F(Recording, EveryTableTravelsThroughASpool) {
  std::mt19937_64 random(7);
  std::vector<Batch> batches;
  for (const model::TableInfo& table : model::AllTables())
    batches.push_back(model::RandomBatch(table, 300, random));
  WriteSpool(folder_ / "all.spool", batches);
  ASSERT_EQ(WriteRecording(folder_ / "all.spool", folder_ / "all.sonde").value(), std::ssize(batches));
  auto store = OpenRecordings({folder_ / "all.sonde"}).value();
  for (const model::TableInfo& table : model::AllTables()) {
    if (table.name == "meta") continue;  // random text repeats as a key, and it has rows of its own
    EXPECT_EQ(Ask(*store, "SELECT count(*) FROM raw." + std::string(table.name)), "300") << table.name;
  }
}

TEST_F(Recording, SeveralAreReadAsOne) {
  const std::string a = Write("a.sonde", 100, "older");
  const std::string b = Write("b.sonde", 200, "newer");
  auto store = OpenRecordings({a, b}).value();
  EXPECT_EQ(Ask(*store, "SELECT string_agg(time_ns::VARCHAR, ',' ORDER BY time_ns) FROM samples"),
            "100,101,102,200,201,202");
  EXPECT_EQ(Ask(*store, "SELECT string_agg(name, ',') FROM threads"), "newer");
  EXPECT_EQ(Ask(*store, "SELECT count(*) FROM raw.threads"), "2");
}

TEST_F(Recording, ReplacesTheFileThatWasThere) {
  Write("run.sonde", 100);
  std::filesystem::remove_all(folder_ / "run.sonde.spool");
  auto store = OpenRecordings({Write("run.sonde", 500)}).value();
  EXPECT_EQ(Ask(*store, "SELECT min(time_ns) FROM samples"), "500");
}

TEST_F(Recording, ACutSpoolGivesARecordingOfItsWholeFrames) {
  WriteSpool(folder_ / "cut.spool", {{Samples(100, 3), Samples(200, 3)}});
  const std::string segment = folder_ / "cut.spool/0000000000000000001.segment";
  std::filesystem::resize_file(segment, std::filesystem::file_size(segment) - 1);
  EXPECT_EQ(WriteRecording(folder_ / "cut.spool", folder_ / "cut.sonde").value(), 1);
  EXPECT_EQ(Ask(*OpenRecordings({folder_ / "cut.sonde"}).value(), "SELECT count(*) FROM samples"), "3");
}

TEST_F(Recording, CanBeReadByItsWriterAndByOthersWhenItIsWritten) {
  WriteSpool(folder_ / "s.spool", {{Samples(1, 3)}});
  const auto written = WriteAndReadRecording(folder_ / "s.spool", folder_ / "x.sonde").value();
  const auto opened = OpenRecordings({folder_ / "x.sonde"}).value();
  for (Store* store : {written.get(), opened.get()}) {
    EXPECT_EQ(Ask(*store, "SELECT count(*) FROM samples"), "3");
    EXPECT_EQ(store->Append({}).error().code, ErrorCode::kUnsupported);
  }
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path()))
    files.push_back(entry.path().filename());
  EXPECT_THAT(files, testing::UnorderedElementsAre("s.spool", "x.sonde"));
}

TEST_F(Recording, IsReadByOneThreadIfItIsSmall) {
  WriteSpool(folder_ / "s.spool", {{Samples(1, 3)}});
  const auto small = WriteAndReadRecording(folder_ / "s.spool", folder_ / "small.sonde").value();
  EXPECT_EQ(Ask(*small, "SELECT current_setting('threads')"), "1");
  const std::string path = folder_ / "small.sonde";
  EXPECT_EQ(Ask(*OpenRecordings({path}).value(), "SELECT current_setting('threads')"), "1");
  std::filesystem::resize_file(path, 1 << 20);
  EXPECT_EQ(Ask(*OpenRecordings({path}).value(), "SELECT current_setting('threads')"), "2");
}

TEST_F(Recording, AFailedWriteLeavesNothingBehind) {
  EXPECT_EQ(WriteRecording(folder_ / "none.spool", folder_ / "x.sonde").error().code, ErrorCode::kNotFound);
  WriteSpool(folder_ / "s.spool", {{Samples(1, 1)}});
  const auto nowhere = WriteRecording(folder_ / "s.spool", folder_ / "no/such/x.sonde");
  ASSERT_FALSE(nowhere.has_value());
  EXPECT_THAT(nowhere.error().message, testing::HasSubstr("no/such/x.sonde"));
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path()))
    EXPECT_EQ(entry.path().filename(), "s.spool");
}

TEST_F(Recording, IsWrittenWholeOverManyCommits) {
  {
    auto writer = spool::Writer::Open(folder_ / "big.spool").value();
    for (int i = 0; i < 25; ++i)
      ASSERT_TRUE(writer.Append(Samples(int64_t{i} * 100'000, 100'000)).has_value());
    ASSERT_TRUE(writer.Append(OneThread("only")).has_value());
  }
  ASSERT_EQ(WriteRecording(folder_ / "big.spool", folder_ / "big.sonde").value(), 26);
  auto store = OpenRecordings({folder_ / "big.sonde"}).value();
  EXPECT_EQ(Ask(*store, "SELECT count(DISTINCT time_ns) FROM samples"), "2500000");
  EXPECT_EQ(Ask(*store, "SELECT name FROM threads"), "only");
}

TEST_F(Recording, IsOpenedWithTheFileItselfOnly) {
  const std::string path = Write("run.sonde");
  auto store = OpenRecordings({path}).value();
  const std::string other = folder_ / "other.csv";
  ASSERT_TRUE(WriteFileAtomically(other, "a,b\n1,2\n").has_value());
  for (const std::string& from : {"read_csv('" + other + "')", "'" + other + "'",
                                  std::string("read_text('/etc/passwd')"), std::string("glob('/*')")}) {
    const std::string sql = "SELECT * FROM " + from;
    EXPECT_FALSE(store->Query(sql).has_value()) << sql;
  }
  EXPECT_EQ(store->Append({{Samples(1, 1)}}).error().code, ErrorCode::kUnsupported);
}

TEST_F(Recording, ASelfMadeOneIsReadLikeAnyOther) {
  const std::string path = folder_ / "made.sonde";
  {
    auto store = CreateRecording(path).value();
    ASSERT_TRUE(store->Append({{Samples(5, 2), OneThread("t")}}).has_value());
    EXPECT_EQ(CreateRecording(path).error().code, ErrorCode::kInvalidArgument);
  }
  EXPECT_EQ(
      Ask(*OpenRecordings({path}).value(), "SELECT count(*) FROM samples JOIN threads USING (process, tid)"),
      "2");
  EXPECT_FALSE(std::filesystem::exists(path + ".wal"));
}

// Files that are no recordings: one clear message each, naming the file.
TEST_F(Recording, ForeignFilesAreIdentified) {
  const auto message = [&](const std::string& path) {
    const auto store = OpenRecordings({path});
    EXPECT_FALSE(store.has_value()) << path;
    if (store.has_value()) return std::string();
    EXPECT_EQ(store.error().code, ErrorCode::kCorrupt) << store.error().message;
    EXPECT_THAT(store.error().message, testing::HasSubstr(path));
    return store.error().message;
  };
  const auto file = [&](const std::string& name, std::string_view content) {
    EXPECT_TRUE(WriteFileAtomically(folder_ / name, content).has_value());
    return folder_ / name;
  };
  using namespace std::string_view_literals;
  EXPECT_THAT(message(file("empty.sonde", "")), testing::HasSubstr("it is empty"));
  EXPECT_THAT(message(file("notes.txt", "to do: sleep\n")), testing::HasSubstr("a text file"));
  EXPECT_THAT(message(file("trace.sqlite", "SQLite format 3\0\x10\0\1\1\0"sv)), testing::HasSubstr("SQLite"));
  EXPECT_THAT(message(file("trace.json", R"({"schemaVersion": 1})")), testing::HasSubstr("JSON"));
  EXPECT_THAT(message(file("noise", std::string(100'000, '\xA5'))), testing::HasSubstr("something else"));
  EXPECT_THAT(message("/proc/self/exe"), testing::HasSubstr("ELF"));
  EXPECT_THAT(message(folder_.path()), testing::HasSubstr("a folder"));
  EXPECT_THAT(message("/dev/null"), testing::HasSubstr("no regular file"));
  EXPECT_EQ(OpenRecordings({folder_ / "nothing"}).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(OpenRecordings({}).error().code, ErrorCode::kInvalidArgument);
}

TEST_F(Recording, ACutFileIsRefusedAtEveryLength) {
  const std::string path = Write("run.sonde");
  const std::string whole = ReadFile(path).value();
  for (const size_t size : {size_t{1}, size_t{11}, size_t{12}, size_t{100}, size_t{4096}, size_t{4100},
                            size_t{8192}, size_t{12287}, size_t{12288}, size_t{12289}, whole.size() / 2,
                            whole.size() - 16384, whole.size() - 4096, whole.size() - 1}) {
    ASSERT_TRUE(WriteFileAtomically(folder_ / "cut.sonde", whole.substr(0, size)).has_value());
    const auto store = OpenRecordings({folder_ / "cut.sonde"});
    ASSERT_FALSE(store.has_value()) << size;
    EXPECT_EQ(store.error().code, ErrorCode::kCorrupt) << size << ": " << store.error().message;
    EXPECT_THAT(store.error().message, testing::HasSubstr(folder_ / "cut.sonde")) << size;
  }
}

TEST_F(Recording, DamagedBytesGiveAnErrorOrAnAnswerAndNoCrash) {
  const std::string path = Write("run.sonde");
  const std::string whole = ReadFile(path).value();
  std::mt19937_64 random(13);
  int errors = 0;
  for (int round = 0; round < 30; ++round) {
    std::string damaged = whole;
    for (int i = 0; i < 64; ++i) damaged[random() % damaged.size()] = static_cast<char>(random());
    ASSERT_TRUE(WriteFileAtomically(folder_ / "damaged.sonde", damaged).has_value());
    const auto store = OpenRecordings({folder_ / "damaged.sonde"});
    if (!store.has_value()) {
      ++errors;
      EXPECT_THAT(store.error().message, testing::HasSubstr(folder_ / "damaged.sonde"));
    } else {
      Ask(**store, "SELECT count(*), max(time_ns), max(process) FROM samples");
    }
  }
  EXPECT_GT(errors, 0);
}

// Neither is resolved, so that it doesn't matter what they would read, or that a FIFO would hang them.
TEST_F(Recording, RecordingsWithSqlOfTheirAuthorAreRejected) {
  const std::string fifo = folder_ / "fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  const std::pair<std::string, std::string> crafted[] = {
      {"the view meta", fmt::format("DROP TABLE file.main.meta; CREATE VIEW file.main.meta AS "
                                    "SELECT 'schema_version' AS key, content AS value FROM read_text('{}')",
                                    fifo)},
      {"the view notes", "CREATE VIEW file.main.notes AS SELECT content FROM read_text('/etc/passwd')"},
      {"the macro meta",
       "CREATE MACRO file.main.meta() AS TABLE SELECT content FROM read_text('/etc/passwd')"},
      {"a generated column in notes", "CREATE TABLE file.main.notes (a INTEGER, b AS (a + 1))"}};
  for (const auto& [refused, sql] : crafted) {
    const std::string path = Write(refused + ".sonde");
    {
      auto instance = duckdb::Instance::Create({}).value();
      auto connection = duckdb::Connection::Open(instance).value();
      ASSERT_TRUE(AttachRecording(connection, path, "file", Access::kWriting).has_value());
      // A view is bound when it is made: it needs a file to read.
      ::unlink(fifo.c_str());
      ASSERT_TRUE(WriteFileAtomically(fifo, "1").has_value());
      const Status made = connection.Run(sql);
      ASSERT_TRUE(made.has_value()) << made.error().message;
      ASSERT_TRUE(connection.Run("CHECKPOINT file").has_value());
      ::unlink(fifo.c_str());
      ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
    }
    const auto opened = OpenRecordings({path});
    ASSERT_FALSE(opened.has_value()) << refused;
    EXPECT_EQ(opened.error().code, ErrorCode::kCorrupt);
    EXPECT_THAT(opened.error().message, testing::HasSubstr("it contains " + refused));
  }
}

TEST_F(Recording, ANewerOneSaysSo) {
  const std::string path = folder_ / "new.sonde";
  {
    auto store = CreateRecording(path).value();
    BatchBuilder meta(model::kMeta);
    meta.Append({"schema_version", std::to_string(model::kSchemaVersion + 1)});
    ASSERT_TRUE(store->Append({{meta.Take()}}).has_value());
  }
  const auto opened = OpenRecordings({path});
  ASSERT_FALSE(opened.has_value());
  EXPECT_EQ(opened.error().code, ErrorCode::kTooNew);
  EXPECT_THAT(opened.error().message, testing::HasSubstr(path));
}

// What runs in a process of its own, because DuckDB must not live on both sides of a fork. Returns its exit
// status.
template <class Function>
int InChild(Function&& function) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(function());
  int status = -1;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_F(Recording, WithoutPermissionItSaysSo) {
  if (::geteuid() != 0) GTEST_SKIP() << "dropping privileges needs root";
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "DuckDB's allocator takes its locks at a fork, more than ThreadSanitizer can follow";
#endif
  // DuckDB is opened here, because the child may not reach the build folder.
  ASSERT_TRUE(CreateInMemory().has_value());
  const std::string path = folder_ / "private.sonde";
  ASSERT_TRUE(WriteFileAtomically(path, "x").has_value());
  ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
  ASSERT_EQ(::chmod(folder_.path().c_str(), 0755), 0);
  EXPECT_EQ(InChild([&] {
              if (::setuid(65534) != 0) return 1;
              const auto store = OpenRecordings({path});
              return !store.has_value() && store.error().code == ErrorCode::kPermissionDenied &&
                             store.error().message.find(path) != std::string::npos
                         ? 0
                         : 2;
            }),
            0);
}

TEST_F(Recording, OneThatIsBeingWrittenSaysSo) {
  int ready[2];
  int done[2];
  ASSERT_EQ(::pipe2(ready, O_CLOEXEC), 0);
  ASSERT_EQ(::pipe2(done, O_CLOEXEC), 0);
  const std::string path = folder_ / "busy.sonde";
  const pid_t child = ::fork();
  if (child == 0) {
    const auto store = CreateRecording(path);
    char byte = store.has_value() ? 'y' : 'n';
    static_cast<void>(::write(ready[1], &byte, 1));
    static_cast<void>(::read(done[0], &byte, 1));
    ::_exit(0);
  }
  char byte = 'n';
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  ASSERT_EQ(byte, 'y');
  const auto opened = OpenRecordings({path});
  ASSERT_FALSE(opened.has_value());
  EXPECT_EQ(opened.error().code, ErrorCode::kUnavailable) << opened.error().message;
  EXPECT_THAT(opened.error().message, testing::HasSubstr(path));
  ASSERT_EQ(::write(done[1], &byte, 1), 1);
  ::waitpid(child, nullptr, 0);
}

// Sets the limit of this process for one test.
class MemoryLimitOf {
 public:
  explicit MemoryLimitOf(int64_t bytes) { SetMemoryLimit(bytes); }
  MemoryLimitOf(const MemoryLimitOf&) = delete;
  MemoryLimitOf& operator=(const MemoryLimitOf&) = delete;
  ~MemoryLimitOf() { SetMemoryLimit(0); }
};

// As a big build makes in an hour.
TEST_F(Recording, OfSevenHundredThousandProcessesIsFinishedAndAskedWithin128MiB) {
  const MemoryLimitOf limit(kMinMemoryLimit);
  constexpr uint64_t kProcesses = 700'000, kABatch = 50'000;
  const std::string spool = folder_ / "many.spool", path = folder_ / "many.sonde";
  {
    auto writer = spool::Writer::Open(spool).value();
    for (uint64_t first = 0; first < kProcesses; first += kABatch) {
      BatchBuilder processes(model::kProcesses);
      BatchBuilder samples(model::kSamples);
      for (uint64_t i = first; i < first + kABatch; ++i) {
        const auto add = [&](const char* name) {
          processes.Append({.process = {i * 0x9E3779B97F4A7C15, i},
                            .pid = static_cast<int32_t>(i % 4'000'000),
                            .name = name,
                            .command = "/usr/lib/gcc/cc1plus -quiet -O2 file_" + std::to_string(i) + ".cpp"});
        };
        if (i % 16 == 0) add("sh");  // as it was first seen; the last row of a key counts
        add("cc1plus");
        samples.Append(
            {.time_ns = static_cast<int64_t>(i), .process = {i * 0x9E3779B97F4A7C15, i}, .tid = 1});
      }
      ASSERT_TRUE(writer.Append(processes.Take()).has_value());
      ASSERT_TRUE(writer.Append(samples.Take()).has_value());
    }
    ASSERT_TRUE(writer.Sync().has_value());
  }
  const auto written = WriteRecording(spool, path);
  ASSERT_TRUE(written.has_value()) << written.error().message;
  const auto store = OpenRecordings({path}).value();
  EXPECT_EQ(Ask(*store, "SELECT count(*) FROM processes WHERE name = 'cc1plus'"), std::to_string(kProcesses));
  EXPECT_EQ(Ask(*store, "SELECT count(*) FROM raw.processes"), std::to_string(kProcesses));
  // A join whose build side exceeds the limit goes to temporary files, which are gone afterwards.
  EXPECT_EQ(Ask(*store,
                "SELECT count(*) FROM (SELECT s.time_ns, p.command, q.command FROM samples s JOIN processes "
                "p USING "
                "(process) JOIN processes q USING (process) ORDER BY p.command DESC, s.time_ns)"),
            std::to_string(kProcesses));
}

TEST(OpenRecordings, RefusesANameThatIsNotUtf8AndSaysSo) {
  const auto opened = OpenRecordings({"run\xff.sonde"});
  ASSERT_FALSE(opened.has_value());
  EXPECT_EQ(opened.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(opened.error().message, testing::HasSubstr("run\uFFFD.sonde: the name is not UTF-8"));
}

}  // namespace
}  // namespace gpusonde::store
