// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "model/selection.h"
#include "store/store.h"

namespace CLI {
class App;
}

namespace gpusonde::app {

// Values, as typed, of the flags that select a part of a recording: --from, --to, --pid, --tid, --filter,
// --device, --stream, --while-gpu-idle.
struct SelectionFlags {
  std::string from;  // UTC, or seconds after the recording's start; empty: open
  std::string to;
  int32_t pid = 0;  // 0: every process
  int32_t tid = 0;
  std::string filter;
  std::optional<int32_t> device;  // ordinal
  std::optional<int64_t> stream;
  bool while_gpu_idle = false;
};

// Adds the flags to a command, all or --from and --to; an invalid time is a usage error. `flags` must outlive
// the parsing.
void AddSelectionFlags(CLI::App& command, SelectionFlags& flags);
void AddTimeFlags(CLI::App& command, SelectionFlags& flags);

// --from and --to as parameters of the API (docs/api.md), each after a '&'. Throws CLI::ValidationError for
// times in seconds: a server has no start that they could count from.
std::string ApiTimeParameters(const SelectionFlags& flags);

// Resolves the flags against a store. Errors: kInvalidArgument if --from is not before --to, or if a pid, tid
// or device matches several; kNotFound if the process or thread has no samples in that time (the message
// names processes that have some) or the device doesn't exist; those of Store::Query.
Result<model::Selection> Select(store::Store& store, const SelectionFlags& flags);

// The same for what needs no samples: --pid may be any process known, and flags that select among samples
// (--tid, --filter, --while-gpu-idle) are not resolved.
Result<model::Selection> SelectAmongAll(store::Store& store, const SelectionFlags& flags);

}  // namespace gpusonde::app
