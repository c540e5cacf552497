// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <unordered_map>

namespace gpusonde::ebpf {

// Why there is no room: the user has all of their share, or all is in use.
enum class Shortage : uint8_t { kNone, kOfUser, kOfAll };

// Shares of something that the kernel's programs have a fixed number of, so that no user can take it all.
// Root and the user who runs this program take as much as there is; any other user up to one part, and all of
// these together up to another. Not thread-safe.
class UserShares {
 public:
  UserShares(uint64_t per_user, uint64_t all_users) : per_user_(per_user), all_users_(all_users) {}

  static bool IsLimited(int32_t user_id);

  // With a shortage nothing is taken.
  Shortage Take(int32_t user_id, uint64_t count);
  void Give(int32_t user_id, uint64_t count);

 private:
  uint64_t per_user_, all_users_;
  uint64_t taken_ = 0;
  std::unordered_map<int32_t, uint64_t> by_user_;
};

}  // namespace gpusonde::ebpf
