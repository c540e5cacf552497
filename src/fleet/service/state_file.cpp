// SPDX-License-Identifier: Apache-2.0
#include "fleet/service/state_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>

namespace gpusonde::fleet {
namespace {

constexpr std::array<uint8_t, 8> kStateMagic = {'G', 'S', 'F', 'S', 'T', 'A', 'T', 1};
constexpr size_t kHashBytes = 32;
constexpr size_t kHeadBytes = kStateMagic.size() + sizeof(FleetId);
// Of a decryptor of a million devices.
constexpr size_t kMaxStateBytes = size_t{512} << 20;

std::array<uint8_t, kHashBytes> HashOf(std::span<const uint8_t> bytes) {
  std::array<uint8_t, kHashBytes> hash{};
  crypto_generichash(hash.data(), hash.size(), bytes.data(), bytes.size(), nullptr, 0);
  return hash;
}

}  // namespace

Result<StateFile> StateFile::Open(const std::string& folder, const FleetId& fleet) {
  ASSIGN_OR_RETURN(Fd lock, LockFolder(folder));
  return StateFile(folder + "/state", fleet, std::move(lock));
}

Result<privacy::SecretBytes> StateFile::Read() const {
  const Result<Fd> file = gpusonde::Open(path_, O_RDONLY);
  if (!file.has_value() && file.error().code == ErrorCode::kNotFound) return privacy::SecretBytes();
  if (!file.has_value()) return Fail(file.error());
  struct stat status{};
  if (::fstat(file->get(), &status) != 0) return Fail(ErrnoError(errno, "stat " + path_));
  const auto corrupt = [&] {
    return Fail(ErrorCode::kCorrupt,
                path_ + " is damaged; its holder needs a new one, and a device a new ticket with it");
  };
  const auto size = static_cast<size_t>(status.st_size);
  if (size < kHeadBytes + kHashBytes || size > kMaxStateBytes) return corrupt();
  privacy::SecretBytes bytes(size);
  for (size_t read = 0; read < size;) {
    const ssize_t got = ::read(file->get(), bytes.data() + read, size - read);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Fail(ErrnoError(errno, "read " + path_));
    if (got == 0) return corrupt();
    read += static_cast<size_t>(got);
  }
  const std::span<const uint8_t> all(bytes);
  if (!std::ranges::equal(all.first(kStateMagic.size()), kStateMagic) ||
      !std::ranges::equal(all.last(kHashBytes), HashOf(all.first(size - kHashBytes))))
    return corrupt();
  if (!std::ranges::equal(all.subspan(kStateMagic.size(), fleet_.size()), fleet_))
    return Fail(ErrorCode::kInvalidArgument,
                path_ + " belongs to another fleet, or to this one before its description was changed");
  return privacy::SecretBytes(bytes.begin() + kHeadBytes, bytes.end() - kHashBytes);
}

Status StateFile::Save(std::span<const uint8_t> state) const {
  privacy::ByteWriter out;
  out.Add(std::span<const uint8_t>(kStateMagic));
  out.Add(std::span<const uint8_t>(fleet_));
  out.Add(state);
  privacy::SecretBytes bytes = out.Take();
  const auto hash = HashOf(bytes);
  bytes.insert(bytes.end(), hash.begin(), hash.end());
  // Not a ReplacingFile, whose file others may read.
  const std::string temporary = path_ + ".tmp";
  ASSIGN_OR_RETURN(const Fd file, gpusonde::Open(temporary, O_WRONLY | O_CREAT | O_TRUNC, 0600));
  TRY(WriteAll(file.get(), std::as_bytes(std::span(bytes))));
  if (::fsync(file.get()) != 0) return Fail(ErrnoError(errno, "sync " + temporary));
  if (::rename(temporary.c_str(), path_.c_str()) != 0) return Fail(ErrnoError(errno, "rename to " + path_));
  return SyncFolderOf(path_);
}

}  // namespace gpusonde::fleet
