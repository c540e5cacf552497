// SPDX-License-Identifier: Apache-2.0
#include "store/live/live_database.h"

#include <fmt/format.h>

#include <utility>

#include "base/disk.h"

namespace gpusonde::store {
namespace {

// When a log goes into its file, row groups that are not full are written anew: of kernel_packs that is some
// minutes' worth. At 10,000 kernels a second the log grows by 20 MB a minute; with 16 MB this took 0.3 s of
// CPU time a minute, with 64 MB 0.1 s (bench/gpu_bench.cpp, StoreAMinute).
constexpr int64_t kLogBytes = int64_t{64} << 20;
// Of one of many stores: what is in the log is in memory too.
constexpr int64_t kSmallLogBytes = int64_t{16} << 20;

}  // namespace

Status LiveDatabase::Open() {
  // Two instances over one file would both write to it: DuckDB's locks are per process.
  if (!retired_.expired())
    return Fail(ErrorCode::kUnavailable,
                "the store is being reopened after a failed write and waits for queries to end; try again");
  ASSIGN_OR_RETURN(auto instance,
                   duckdb::Instance::Create({.threads = one_of_many_ ? 1 : 2,
                                             .log_bytes = one_of_many_ ? kSmallLogBytes : kLogBytes,
                                             .temporary_folder = folder_ + "/temporary"}));
  ASSIGN_OR_RETURN(duckdb::Connection writer, duckdb::Connection::Open(instance));
  TRY(writer.Run(fmt::format("ATTACH ':memory:' AS {}", kRecent)));
  // Queries reach the files of this folder and nothing else.
  TRY(writer.Run(fmt::format("SET allowed_directories = [{}]", duckdb::QuoteText(folder_ + "/"))));
  TRY(writer.Run("SET enable_external_access = false"));
  TRY(writer.Run("SET lock_configuration = true"));
  instance_ = std::move(instance);
  writer_.emplace(std::move(writer));
  return {};
}

void LiveDatabase::Retire() {
  retired_ = instance_->until_closed();
  writer_.reset();
  instance_.reset();
}

bool LiveDatabase::Close() {
  // This and the writer's connection.
  if (instance_.use_count() > 2) return false;
  writer_.reset();
  instance_.reset();
  return true;
}

Status LiveDatabase::CheckRoom() const { return CheckDiskRoom(folder_, min_free_bytes_); }

bool LiveDatabase::IsDamaging(const Error& error) {
  switch (error.code) {
    case ErrorCode::kOutOfSpace:
    case ErrorCode::kIo:
    case ErrorCode::kInternal:
    case ErrorCode::kCorrupt:
      return true;
    default:
      return false;
  }
}

}  // namespace gpusonde::store
