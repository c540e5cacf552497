// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "base/result.h"
#include "base/temporary_folder.h"

namespace gpusonde::importers::sqlite {

// A copy of a database whose last changes are still in the write-ahead log or rollback journal beside it,
// with these applied. libsqlite3 would create files beside the trace to read it, which fails in read-only
// folders. Deleted with the object.
class SettledCopy {
 public:
  // Nullopt if there is nothing beside the database to apply. The copy lies in $TMPDIR, or else /var/tmp.
  // Errors: kOutOfSpace beyond `max_bytes`; kUnavailable if a file changes meanwhile; kCorrupt; kIo.
  static Result<std::optional<SettledCopy>> Make(const std::string& path, uint64_t max_bytes);

  std::string path() const { return folder_.path() + "/trace"; }

 private:
  explicit SettledCopy(TemporaryFolder folder) : folder_(std::move(folder)) {}

  TemporaryFolder folder_;
};

}  // namespace gpusonde::importers::sqlite
