// SPDX-License-Identifier: Apache-2.0
#include "sources/ebpf/user_shares.h"

#include <unistd.h>

namespace gpusonde::ebpf {

bool UserShares::IsLimited(int32_t user_id) {
  return user_id != 0 && user_id != static_cast<int32_t>(::geteuid());
}

Shortage UserShares::Acquire(int32_t user_id, uint64_t count) {
  if (!IsLimited(user_id) || count == 0) return Shortage::kNone;
  const auto known = by_user_.find(user_id);
  const uint64_t before = known == by_user_.end() ? 0 : known->second;
  if (count > per_user_ - before) return Shortage::kOfUser;
  if (count > all_users_ - acquired_) return Shortage::kOfAll;
  by_user_[user_id] = before + count;
  acquired_ += count;
  return Shortage::kNone;
}

void UserShares::Release(int32_t user_id, uint64_t count) {
  const auto known = by_user_.find(user_id);
  if (known == by_user_.end()) return;
  acquired_ -= count;
  known->second -= count;
  if (known->second == 0) by_user_.erase(known);
}

}  // namespace gpusonde::ebpf
