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

// --from, --to, --pid, --tid, --filter, --device, --stream, --while-gpu-idle: the part of a recording that a
// command reads, as typed.
struct SelectionFlags {
  std::string from;  // UTC, or seconds after the recording's first moment; empty: open
  std::string to;
  int32_t pid = 0;  // 0: every process
  int32_t tid = 0;
  std::string filter;
  std::optional<int32_t> device;  // ordinal
  std::optional<int64_t> stream;
  bool while_gpu_idle = false;
};

// Adds the flags to a command. `flags` must outlive the parsing; a time that is none is wrong usage.
void AddSelectionFlags(CLI::App& command, SelectionFlags& flags);

// What the flags mean in this store. Errors: kInvalidArgument when no time is between --from and --to;
// kNotFound for a process or thread without samples in that time, with the processes that have some,
// and for a device that is not there;
// kInvalidArgument when a pid or tid was used again within it; those of Store::Query.
Result<model::Selection> Select(store::Store& store, const SelectionFlags& flags);

}  // namespace gpusonde::app
