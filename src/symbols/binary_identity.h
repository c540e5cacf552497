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
// A build id is what a file says of itself: any user can give their own file that of libc. It is believed of
// system files, which root alone can write; there it makes two machines agree. Any other file is known by its
// build id together with who owns it, its inode and when that was made, its size, and when it was changed:
// what another user can't forge, and what stays the same when the file is renamed or linked. The device is
// left out, since each container sees the files of a shared image on a device of its own, but for FUSE, where
// a user's program makes up all of this.
// docs/decisions/0096.
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

// Whether the file belongs to root, can be written by nobody else, and is what `path` names here (a
// container's root may be any user), on a file system that the kernel itself answers for.
bool IsSystemFile(const Fd& file, const std::string& path);

}  // namespace gpusonde::symbols
