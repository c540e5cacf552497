// SPDX-License-Identifier: Apache-2.0
#include "fleet/privacy/bfv_decryptor.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace gpusonde::privacy {
namespace {

Random RandomFor(KeyBytes secret, std::string_view label, std::span<const uint8_t> data) {
  return Random::FromKey(KeyBytes(Derive(secret, label, data).values()));
}

}  // namespace

BfvDecryptor::BfvDecryptor(uint64_t min_reports, KeyBytes secret)
    : min_reports_(min_reports),
      secret_(kKeyBytes),
      random_(RandomFor(secret, "gpusonde bfv share", {})),
      share_(SecretKey::Generate(random_)) {
  std::ranges::copy(secret, secret_.values().begin());
}

PublicKey BfvDecryptor::MakePublic(const Evaluated& a) { return share_.MakePublic(a, random_); }

Result<Polynomial> BfvDecryptor::Answer(const ReportList& list, const Ciphertext& sum) {
  if (list.entries().size() < min_reports_ || list.entries().size() > kMaxReports)
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("report list: {} reports; from {} to {} are released together",
                            list.entries().size(), min_reports_, kMaxReports));
  auto& spent = spent_[list.epoch()];
  for (const ReportList::Entry& entry : list.entries()) {
    const auto found = spent.find(entry.device);
    if (found != spent.end() && found->second != list.hash())
      return Fail(ErrorCode::kPermissionDenied,
                  fmt::format("report list: device {}'s report of epoch {} was answered for in another list",
                              entry.device, list.epoch()));
  }
  const std::vector<uint8_t> bytes = Pack(sum);
  ListHash of_sum;
  crypto_generichash(of_sum.data(), of_sum.size(), bytes.data(), bytes.size(), nullptr, 0);
  if (answered_[list.epoch()].try_emplace(list.hash(), of_sum).first->second != of_sum)
    return Fail(ErrorCode::kPermissionDenied, "report list: another sum was answered for it");
  for (const ReportList::Entry& entry : list.entries()) spent.try_emplace(entry.device, list.hash());
  Random smudging = RandomFor(KeyBytes(secret_.values()), "gpusonde bfv smudging", list.hash());
  return AnswerShare(share_, sum, smudging);
}

void BfvDecryptor::Forget(uint32_t before_epoch) {
  spent_.erase(spent_.begin(), spent_.lower_bound(before_epoch));
  answered_.erase(answered_.begin(), answered_.lower_bound(before_epoch));
}

}  // namespace gpusonde::privacy
