// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "store/duckdb/connection.h"

namespace gpusonde::store {

// The DuckDB instance under a LiveStore, replaced after a failed write.
//
// After a failed write DuckDB's memory can't be trusted: three of eight runs on a full disk ended with
// SIGSEGV some commits later. The first failure therefore retires the instance: it is closed when its last
// query has ended, and a new one is opened once there is disk space again. Committed data is in the files and
// their logs, the rest in the agent's spool. Writing stops at a reserve before the disk is full, so that the
// instance stays sound and queries are answered.
//
// Not thread-safe.
class LiveDatabase {
 public:
  // A catalog in memory for views over the newest days.
  static constexpr std::string_view kRecent = "recent";

  // `folder` holds the days' files. Nothing is written while its file system has less than `min_free_bytes`
  // left. `one_of_many` as LiveStore::Options.
  LiveDatabase(std::string folder, int64_t min_free_bytes, bool one_of_many)
      : folder_(std::move(folder)), min_free_bytes_(min_free_bytes), one_of_many_(one_of_many) {}

  bool is_open() const { return instance_ != nullptr; }
  // Opens an instance without attached files. Errors: kUnavailable while queries over the retired instance
  // run, and until it is closed.
  Status Open();
  // Drops the instance after a failed write or set-up.
  void Retire();
  // Closes the instance, whose logs go into the files, unless a query uses it. Returns whether it is closed.
  bool Close();

  // Errors: kOutOfSpace when less than the reserve is free; kIo.
  Status CheckRoom() const;

  // Only while open.
  duckdb::Connection& writer() { return *writer_; }
  const std::shared_ptr<duckdb::Instance>& instance() const { return instance_; }

  // Whether a failed write may have corrupted the instance's memory.
  static bool IsDamaging(const Error& error);

 private:
  std::string folder_;
  int64_t min_free_bytes_;
  bool one_of_many_;
  std::shared_ptr<duckdb::Instance> instance_;
  std::optional<duckdb::Connection> writer_;
  std::weak_ptr<const void> retired_;  // duckdb::Instance::until_closed
};

}  // namespace gpusonde::store
