// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace gpusonde {

// Checks that the file system of `folder` is writable and has at least `min_free_bytes` available. Errors:
// kPermissionDenied for a read-only one; kOutOfSpace, with the available size; those of statvfs.
Status CheckDiskRoom(const std::string& folder, int64_t min_free_bytes);

// The folder that holds `path`, or will hold it; "." for a name without a folder.
std::string FolderOf(const std::string& path);

// Checks that the folder that holds `path`, or will hold it, is there. Errors, with what to do: kNotFound,
// also of a working folder that was deleted; kInvalidArgument for what is no folder; those of stat.
Status CheckFolderOf(const std::string& path);

}  // namespace gpusonde
