// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <unordered_map>

namespace gpusonde::ebpf {

// Why nothing can be acquired: the user's share is used up, or that of all users.
enum class Shortage : uint8_t { kNone, kOfUser, kOfAll };

// Shares of a fixed resource of the eBPF programs, so that no user can exhaust it. Root and the user of this
// process are not limited; any other user gets at most `per_user`, and all of these together `all_users`. Not
// thread-safe.
class UserShares {
 public:
  UserShares(uint64_t per_user, uint64_t all_users) : per_user_(per_user), all_users_(all_users) {}

  static bool IsLimited(int32_t user_id);

  // With a shortage nothing is acquired.
  Shortage Acquire(int32_t user_id, uint64_t count);
  void Release(int32_t user_id, uint64_t count);

 private:
  uint64_t per_user_, all_users_;
  uint64_t acquired_ = 0;  // by limited users
  std::unordered_map<int32_t, uint64_t> by_user_;
};

}  // namespace gpusonde::ebpf
