// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "base/json_writer.h"
#include "compare/stack_diff.h"

namespace gpusonde::compare {

// A flame graph of the difference as an object of columns: the nodes in pre-order from the root, siblings by
// name, with their names in `strings`. Of more than `most` frames the smallest are left out, with all below
// them, and counted.
void WriteStacks(JsonWriter& json, const StackDiff& diff, size_t most);

}  // namespace gpusonde::compare
