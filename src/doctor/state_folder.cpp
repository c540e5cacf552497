// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "base/error.h"
#include "base/fd.h"
#include "doctor/probes.h"

namespace gpusonde::doctor {
namespace {

// 2 cores at 19 Hz for a day are 3.3 M samples; at 100 bytes a row, three such days fit.
constexpr uint64_t kEnoughBytes = uint64_t{1} << 30;

// The folder itself, or the nearest existing path above it.
std::string NearestExisting(std::filesystem::path folder) {
  std::error_code error;
  while (!std::filesystem::exists(folder, error) && folder.has_relative_path()) folder = folder.parent_path();
  return folder.empty() ? "." : folder.string();
}

// Whether a file can be created and written there; errno says why not. The file never gets a name.
bool Writable(const std::string& folder) {
  const Fd file(::open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600));
  if (file.valid()) return ::write(file.get(), "x", 1) == 1;
  // Some file systems don't support nameless files.
  return errno == EOPNOTSUPP && ::access(folder.c_str(), W_OK) == 0;
}

}  // namespace

Finding ProbeStateFolder(const Settings& settings) {
  const std::string folder = NearestExisting(settings.state_folder);
  if (std::error_code error; !std::filesystem::is_directory(folder, error))
    return Fails(folder + " is not a folder", "choose another folder with --state");
  const std::string where = folder == settings.state_folder
                                ? folder
                                : fmt::format("{} (for {}, not created yet)", folder, settings.state_folder);
  if (!Writable(folder))
    return Fails(ErrnoError(errno, "write a file in " + where).message,
                 "choose another folder with --state, or make this one writable");
  struct statvfs disk{};
  if (::statvfs(folder.c_str(), &disk) != 0)
    return Fails(ErrnoError(errno, "ask for the free space of " + where).message,
                 "choose another folder with --state");
  const uint64_t free_bytes = uint64_t{disk.f_bavail} * disk.f_frsize;
  if (free_bytes < kEnoughBytes)
    return Fails(fmt::format("{} has {} MiB free, less than a day of a busy machine may need ({} MiB)", where,
                             free_bytes >> 20, kEnoughBytes >> 20),
                 "free some space, or choose another folder with --state");
  return Works(fmt::format("{} is writable and has {} GiB free", where, free_bytes >> 30));
}

}  // namespace gpusonde::doctor
