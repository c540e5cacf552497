// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "base/fd.h"
#include "base/id128.h"
#include "base/result.h"

namespace gpusonde::symbols {

// Which file a binary is, so that the names and unwind tables read from it are kept for it alone.
//
// A file states its build id itself, so any user can give a file the build id of libc. It is trusted only for
// system files, which only root can write, and identifies them across machines. Any other file is identified
// by its build id together with its owner, its inode and when that was created, its size, and when it was
// changed: facts that another user can't forge, and that stay the same when the file is renamed or linked.
// The device is left out, as each container sees the files of a shared image on a device of its own; except
// for FUSE, where a user's program invents all of these facts. docs/decisions/0096.
struct BinaryIdentity {
  Id128 id;
  std::string build_id;  // hex; empty where the file has none
};

// Of the open file that `path` names in some mount namespace. Errors: those of fstat; a file that is no ELF
// file has no build id.
Result<BinaryIdentity> IdentifyBinary(const Fd& file, const std::string& path);

// The same where the build id is known.
Result<BinaryIdentity> IdentifyBinary(const Fd& file, const std::string& path, std::string build_id);

// The id of system files with this build id.
Id128 SystemBinaryId(const std::string& build_id);

// Whether the file belongs to root, can be written by root only, and is the one that `path` names here (a
// container's root may be any user), on a file system that the kernel implements itself.
bool IsSystemFile(const Fd& file, const std::string& path);

}  // namespace gpusonde::symbols
