// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "fleet/service/board.h"
#include "fleet/service/decryptor_service.h"
#include "fleet/service/device_service.h"
#include "fleet/service/keys.h"

namespace gpusonde::fleet::testing {

inline constexpr uint32_t kPeriodS = 100;

inline SigningKey KeyOf(uint8_t number) {
  std::vector<uint8_t> seed(privacy::kKeyBytes, number);
  return SigningKey(privacy::KeyBytes(seed));
}

inline SigningKey AuthorityKey() { return KeyOf(99); }

// The ticket of a device that is the same each time, as that of MakeTicket is not.
inline Ticket TicketOf(const FleetId& fleet, uint8_t number) {
  Ticket ticket{.fleet = fleet, .device = uint64_t{1000} + number};
  std::ranges::fill(ticket.seed.values(), static_cast<uint8_t>(50 + number));
  SignTicket(ticket, AuthorityKey());
  return ticket;
}

// A small fleet with little noise, whose results can be checked.
inline Description SmallFleet(size_t decryptors = 3) {
  Description fleet{.name = "test", .period_s = kPeriodS, .groups = 1, .cohorts = 1};
  fleet.rules = {.min_reports = 2, .epsilon = 14.8, .delta = 1e-9, .sigma = 1};
  // As many windows as with the usual noise.
  fleet.rules.epsilon = 1e12;
  fleet.authority = AuthorityKey().open();
  for (size_t i = 0; i < decryptors; ++i)
    fleet.decryptors.push_back({fmt::format("decryptor {}", i), KeyOf(static_cast<uint8_t>(1 + i)).open()});
  fleet.catalog.applications = {{.name = "one", .fingerprint = {700}},
                                {.name = "two", .fingerprint = {-700}}};
  return fleet;
}

// A board in this process, on a network that loses requests and answers.
class LocalBoard final : public BoardClient {
 public:
  LocalBoard(Board& board, const int64_t& now_ms) : board_(&board), now_ms_(now_ms) {}

  // Of requests, and of answers.
  void Lose(double share) { lost_ = share; }
  void Use(Board& board) { board_ = &board; }

  Result<std::vector<Bytes>> Notices(uint32_t epoch) override {
    return Over([&] { return board_->Notices(epoch); });
  }
  Result<std::vector<Bytes>> Enrolments(uint32_t epoch) override {
    return Over([&] { return board_->Enrolments(epoch, now_ms_); });
  }
  Result<std::vector<ListedReports>> Lists(uint32_t epoch) override {
    return Over([&] { return board_->Lists(epoch); });
  }
  Status PostNotice(std::span<const uint8_t> notice) override {
    return Over([&] { return board_->PostNotice(notice, now_ms_); });
  }
  Result<std::string> PostReport(std::span<const uint8_t> report) override {
    return Over([&] { return board_->PostReport(report, now_ms_); });
  }

 private:
  bool Loses() { return std::uniform_real_distribution()(random_) < lost_; }
  template <class Ask>
  auto Over(Ask ask) -> decltype(ask()) {
    if (Loses()) return std::unexpected(Error{ErrorCode::kUnavailable, "the request is lost"});
    auto answer = ask();
    if (Loses()) return std::unexpected(Error{ErrorCode::kUnavailable, "the answer is lost"});
    return answer;
  }

  Board* board_;
  const int64_t& now_ms_;
  double lost_ = 0;
  std::mt19937 random_{1};
};

}  // namespace gpusonde::fleet::testing
