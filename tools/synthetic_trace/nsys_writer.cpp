// SPDX-License-Identifier: Apache-2.0
#include <sqlite3.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "writers.h"

namespace gpusonde::synthetic {
namespace {

// As Nsight Systems 2024 declares them.
constexpr const char* kSchema = R"(
PRAGMA page_size = 4096; PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE;
CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT);
CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER, utcTime TEXT, localTime TEXT);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
  contextId INTEGER NOT NULL, greenContextId INTEGER, streamId INTEGER NOT NULL, correlationId INTEGER,
  globalPid INTEGER, demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL, mangledName INTEGER,
  launchType INTEGER, cacheConfig INTEGER, registersPerThread INTEGER NOT NULL, gridX INTEGER NOT NULL,
  gridY INTEGER NOT NULL, gridZ INTEGER NOT NULL, blockX INTEGER NOT NULL, blockY INTEGER NOT NULL,
  blockZ INTEGER NOT NULL, staticSharedMemory INTEGER NOT NULL, dynamicSharedMemory INTEGER NOT NULL,
  localMemoryPerThread INTEGER NOT NULL, localMemoryTotal INTEGER NOT NULL, gridId INTEGER NOT NULL,
  sharedMemoryExecuted INTEGER, graphNodeId INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
  contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,
  bytes INTEGER NOT NULL, copyKind INTEGER NOT NULL, srcKind INTEGER, dstKind INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL,
  globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL,
  callchainId INTEGER);
CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, text TEXT,
  globalTid INTEGER, domainId INTEGER);
INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1700000000000000000, NULL, NULL);
INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_SCHEMA_VERSION', '3.12.0');
BEGIN;)";

constexpr int64_t kLaunchName = 1001;
constexpr int64_t kCopyName = 1002;

class Insert {
 public:
  Insert(sqlite3* database, const char* sql) {
    sqlite3_prepare_v3(database, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement_, nullptr);
  }
  Insert(const Insert&) = delete;
  Insert& operator=(const Insert&) = delete;
  ~Insert() { sqlite3_finalize(statement_); }

  template <class... Values>
  bool operator()(const Values&... values) {
    int index = 0;
    (Bind(++index, values), ...);
    const bool done = sqlite3_step(statement_) == SQLITE_DONE;
    sqlite3_reset(statement_);
    return done;
  }

 private:
  void Bind(int index, int64_t value) { sqlite3_bind_int64(statement_, index, value); }
  void Bind(int index, const std::string& value) {
    sqlite3_bind_text(statement_, index, value.data(), static_cast<int>(value.size()), SQLITE_TRANSIENT);
  }

  sqlite3_stmt* statement_ = nullptr;
};

class NsysFile {
 public:
  explicit NsysFile(sqlite3* database)
      : kernel_(database,
                "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES "
                "(?1,?2,?3,1,NULL,?4,?5,?6,?7,?7,?7,1,0,64,?8,1,1,256,1,1,4096,0,0,?9,?5,102400,NULL)"),
        copy_(database, "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (?1,?2,?3,1,?4,?5,?6,?7,1,1,2)"),
        call_(database, "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?1,?2,0,?3,?4,?5,0,NULL)"),
        range_(database, "INSERT INTO NVTX_EVENTS VALUES (?1,?2,59,'step',?3,0)") {}

  bool Add(const std::vector<Step>& steps) {
    // Each table is in order of starts over all processes, as Nsight writes it.
    std::vector<std::pair<const Event*, int64_t>> events;
    bool done = true;
    for (size_t i = 0; i < steps.size(); ++i)
      for (const Event& event : steps[i].events) events.emplace_back(&event, static_cast<int64_t>(i));
    std::ranges::stable_sort(events, {}, [](const auto& one) { return one.first->start_ns; });
    for (const auto& [event, rank] : events)
      done = done &&
             (event->kernel >= 0
                  ? kernel_(event->start_ns, event->end_ns, rank, int64_t{event->stream}, event->correlation,
                            Pid(rank), int64_t{event->kernel} + 1, int64_t{event->grid}, int64_t{62914560})
                  : copy_(event->start_ns, event->end_ns, rank, int64_t{event->stream}, event->correlation,
                          Pid(rank), event->bytes));
    // Calls are in order within each process only.
    for (size_t i = 0; i < steps.size(); ++i) {
      const int64_t thread = Pid(static_cast<int64_t>(i)) | (100 + static_cast<int64_t>(i));
      for (const Call& call : steps[i].calls)
        done = done && call_(call.start_ns, call.end_ns, thread, call.correlation,
                             call.is_copy ? kCopyName : kLaunchName);
      done = done && range_(steps[i].begin_ns, steps[i].end_ns, thread);
    }
    return done;
  }

 private:
  static int64_t Pid(int64_t rank) { return (int64_t{1} << 56) | (100 + rank) << 24; }

  Insert kernel_, copy_, call_, range_;
};

Status Write(sqlite3* database, const Plan& plan, const std::string& path) {
  const auto failed = [&] { return Fail(ErrorCode::kIo, path + ": " + sqlite3_errmsg(database)); };
  if (sqlite3_exec(database, kSchema, nullptr, nullptr, nullptr) != SQLITE_OK) return failed();
  {
    Insert name(database, "INSERT INTO StringIds VALUES (?1, ?2)");
    for (size_t i = 0; i < KernelNames().size(); ++i)
      if (!name(static_cast<int64_t>(i) + 1, KernelNames()[i])) return failed();
    if (!name(kLaunchName, std::string("cudaLaunchKernel_v7000"))) return failed();
    if (!name(kCopyName, std::string("cudaMemcpyAsync_v3020"))) return failed();
    NsysFile file(database);
    Workload workload(plan);
    for (int64_t i = 0; i < workload.steps(); ++i)
      if (!file.Add(workload.Next())) return failed();
  }
  if (sqlite3_exec(database, "COMMIT", nullptr, nullptr, nullptr) != SQLITE_OK) return failed();
  return {};
}

}  // namespace

Status WriteNsys(const Plan& plan, const std::string& path) {
  ::unlink(path.c_str());
  sqlite3* database = nullptr;
  if (sqlite3_open(path.c_str(), &database) != SQLITE_OK)
    return Fail(ErrorCode::kIo, path + ": can't be made");
  Status done = Write(database, plan, path);
  sqlite3_close(database);
  return done;
}

}  // namespace gpusonde::synthetic
