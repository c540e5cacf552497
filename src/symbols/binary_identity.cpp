// SPDX-License-Identifier: Apache-2.0
#include "symbols/binary_identity.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>

#include <cerrno>

#include "base/time.h"
#include "symbols/elf_file.h"

namespace gpusonde::symbols {
namespace {

uint64_t Nanoseconds(const statx_timestamp& time) {
  return static_cast<uint64_t>(time.tv_sec) * kNanosPerSecond + time.tv_nsec;
}

// Whether a user's program answers what owner and inode the file has.
bool IsOnFuse(const Fd& file) {
  struct statfs status{};
  return ::fstatfs(file.get(), &status) != 0 || status.f_type == FUSE_SUPER_MAGIC;
}

}  // namespace

Result<BinaryIdentity> IdentifyBinary(const Fd& file, const std::string& path) {
  return IdentifyBinary(file, path, ReadBuildId(file.get()).value_or(""));
}

Result<BinaryIdentity> IdentifyBinary(const Fd& file, const std::string& path, std::string build_id) {
  if (!build_id.empty() && IsSystemFile(file, path))
    return BinaryIdentity{SystemBinaryId(build_id), std::move(build_id)};
  struct statx status{};
  if (::statx(file.get(), "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME, &status) != 0)
    return Fail(ErrnoError(errno, "stat " + path));
  const bool knows_birth = (status.stx_mask & STATX_BTIME) != 0;
  const Id128 id =
      IdHasher("binary_file")
          .Add(build_id)
          .Add(uint64_t{status.stx_uid})
          .Add(uint64_t{status.stx_ino})
          .Add(Nanoseconds(knows_birth ? status.stx_btime : status.stx_ctime))
          .Add(uint64_t{status.stx_size})
          .Add(Nanoseconds(status.stx_mtime))
          .Add(IsOnFuse(file) ? uint64_t{makedev(status.stx_dev_major, status.stx_dev_minor)} : 0)
          .Finish();
  return BinaryIdentity{id, std::move(build_id)};
}

Id128 SystemBinaryId(const std::string& build_id) { return IdHasher("build_id").Add(build_id).Finish(); }

bool IsSystemFile(const Fd& file, const std::string& path) {
  struct stat theirs{}, ours{};
  return ::fstat(file.get(), &theirs) == 0 && theirs.st_uid == 0 &&
         (theirs.st_mode & (S_IWGRP | S_IWOTH)) == 0 && ::stat(path.c_str(), &ours) == 0 &&
         ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino && !IsOnFuse(file);
}

}  // namespace gpusonde::symbols
