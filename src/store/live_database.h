// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "store/duckdb/connection.h"

namespace gpusonde::store {

// The DuckDB instance under a LiveStore, and when it must not be used.
//
// After a failed write DuckDB's memory can't be trusted: of eight full disks, three ended in SIGSEGV some
// commits later. So the first failure retires the instance. It is closed when the last query over it has
// ended, and a new one is opened once there is room; what was committed is in the files and their logs, the
// rest is in the agent's spool. Before a disk is full altogether, writing stops at a reserve, with the
// instance in good order and queries answered.
//
// Not thread-safe.
class LiveDatabase {
 public:
  // `folder` holds the days' files. Nothing is written while its file system has less than `min_free_bytes`
  // left.
  LiveDatabase(std::string folder, int64_t min_free_bytes)
      : folder_(std::move(folder)), min_free_bytes_(min_free_bytes) {}

  bool is_open() const { return instance_ != nullptr; }
  // Opens an instance without files. Errors: kUnavailable while queries over the retired instance run.
  Status Open();
  // Closes the instance for good, because a write or its set-up failed.
  void Retire();

  // Errors: kOutOfSpace when less than the reserve is free; kIo.
  Status CheckRoom() const;

  // Only while open.
  duckdb::Connection& writer() { return *writer_; }
  const std::shared_ptr<duckdb::Instance>& instance() const { return instance_; }

  // Whether an error of a write leaves the instance in doubt.
  static bool IsDamaging(const Error& error);

 private:
  std::string folder_;
  int64_t min_free_bytes_;
  std::shared_ptr<duckdb::Instance> instance_;
  std::optional<duckdb::Connection> writer_;
  std::weak_ptr<duckdb::Instance> retired_;
};

}  // namespace gpusonde::store
