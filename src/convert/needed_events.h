// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace gpusonde::convert {

// Whether an SQL statement reads no table but those that ImportOptions::gpu_only fills, so that the rest of a
// trace, usually most of it, needn't be imported for it.
//
// Looks at the statement's words, in any quotes or comments too: a table can only be read by its name, except
// by functions that are given it as a text, or list tables. A statement with a word of theirs, or with the
// name of another table, even as that of a column, needs everything.
bool NeedsOnlyGpuWork(std::string_view sql);

}  // namespace gpusonde::convert
