// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "base/fd.h"
#include "base/result.h"
#include "fleet/privacy/byte_stream.h"
#include "fleet/service/description.h"

namespace gpusonde::fleet {

// The secret state of one decryptor or device: a file in a folder of its own, which only its owner reads and
// one process at a time uses. Not thread-safe.
class StateFile {
 public:
  // Creates the folder. Errors: kUnavailable if another process uses it; those of the file system.
  static Result<StateFile> Open(const std::string& folder, const FleetId& fleet);

  // What was saved last, empty at first. Errors: kInvalidArgument if it is another fleet's; kCorrupt.
  Result<privacy::SecretBytes> Read() const;
  // Durable on return; on an error what was saved before is still there.
  Status Save(std::span<const uint8_t> state) const;

  const std::string& path() const { return path_; }

 private:
  StateFile(std::string path, FleetId fleet, Fd lock)
      : path_(std::move(path)), fleet_(fleet), lock_(std::move(lock)) {}

  std::string path_;
  FleetId fleet_;
  Fd lock_;
};

}  // namespace gpusonde::fleet
