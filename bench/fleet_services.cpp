// SPDX-License-Identifier: Apache-2.0
// What a fleet's aggregator and decryptors can do: enrols many devices, sends a report of each over HTTP and
// releases the sums, which must be those of the reports but for the noise. Real services, keys, signatures
// and disk; one process, one machine, and a clock that is set forward, so that nobody waits.
//
//     bench_fleet_services DEVICES
//
// Writes a line of JSON, for bench/fleet_bench.py.
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/text.h"
#include "base/time.h"
#include "bench.h"
#include "fleet/histogram.h"
#include "fleet/roles/device.h"
#include "fleet/roles/enrolment.h"
#include "fleet/roles/message.h"
#include "fleet/service/board.h"
#include "fleet/service/board_routes.h"
#include "fleet/service/decryptor_service.h"
#include "fleet/service/http_board.h"
#include "fleet/service/keys.h"
#include "fleet/service/notice.h"
#include "fleet/service/signed_epoch.h"
#include "server/http_server.h"

namespace gpusonde::fleet {
namespace {

constexpr uint32_t kEpoch = 500'000;  // that is measured
constexpr size_t kDecryptors = 2;
constexpr size_t kSenders = 8;     // requests under way
constexpr size_t kAtOnce = 2'000;  // reports that are made, then sent: 33 MB
constexpr double kDeviations = 7;  // of the noise, within which each of 300,000 slots must be

SigningKey NewKey() {
  privacy::Wiped<uint8_t> seed(privacy::kKeyBytes);
  privacy::Random::FromSystem().Fill(seed.values());
  return SigningKey(privacy::KeyBytes(seed.values()));
}

Description MakeFleet(const SigningKey& authority, std::span<const SigningKey> decryptors, size_t devices) {
  Description fleet{.name = "benchmark"};
  // Lists are a tenth longer than they must be, or more; 8 cohorts where there are 100,000 devices.
  const uint64_t smallest_list = fleet.rules.min_reports * 11 / 10 * (fleet.groups + 1);
  fleet.cohorts = static_cast<uint32_t>(std::clamp<uint64_t>(devices / smallest_list, 1, 8));
  fleet.authority = authority.open();
  for (const SigningKey& key : decryptors) fleet.decryptors.push_back({"decryptor", key.open()});
  fleet.catalog.applications = {{.name = "one", .fingerprint = {700}},
                                {.name = "two", .fingerprint = {-700}}};
  return fleet;
}

// Calls `act` for [0, count), on several threads.
void OnThreads(size_t count, size_t threads, const std::function<void(size_t)>& act) {
  std::atomic<size_t> next = 0;
  std::vector<std::jthread> running;
  for (size_t i = 0; i < threads; ++i)
    running.emplace_back([&] {
      for (size_t at = next++; at < count; at = next++) act(at);
    });
}

double Seconds(int64_t from_ns) { return static_cast<double>(MonotonicNow() - from_ns) / kNanosPerSecond; }

double OwnCpuSeconds() {
  timespec used{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) / kNanosPerSecond;
}

// An aggregator that serves, with its folder.
class Aggregator {
 public:
  Aggregator(const Description& fleet, const std::string& folder, const std::atomic<int64_t>& now_ms)
      : board_(Must(Board::Open(fleet, folder))),
        server_(Must(server::HttpServer::Create({.listen = {}},
                                                BoardRoutes(*board_, [&now_ms] { return now_ms.load(); })))),
        thread_([this] { server_->Run(); }) {}
  Aggregator(const Aggregator&) = delete;
  Aggregator& operator=(const Aggregator&) = delete;
  ~Aggregator() { server_->Stop(); }

  Board& board() { return *board_; }
  HttpBoard Connect() const {
    return HttpBoard({.url = {.host = "127.0.0.1", .port = fmt::to_string(server_->address().port)},
                      .token_file = "",
                      .tls = {}});
  }

 private:
  std::unique_ptr<Board> board_;
  std::unique_ptr<server::HttpServer> server_;
  std::jthread thread_;
};

// The devices' side, without their files.
class Devices {
 public:
  Devices(const Description& fleet, const SigningKey& authority, size_t count)
      : fleet_(fleet), id_(fleet.Id()), devices_(count) {
    OnThreads(count, std::thread::hardware_concurrency(),
              [&](size_t at) { devices_[at].ticket = MakeTicket(id_, authority); });
  }

  // The enrolments of all, with the decryptors' offers.
  std::vector<Bytes> Enrol(std::span<const std::array<uint8_t, 32>> offers) {
    std::vector<Bytes> notices(devices_.size());
    OnThreads(devices_.size(), std::thread::hardware_concurrency(), [&](size_t at) {
      One& one = devices_[at];
      privacy::Wiped<uint8_t> secret(privacy::kKeyBytes);
      privacy::Random::FromSystem().Fill(secret.values());
      const ExchangeKey exchange(privacy::KeyBytes(secret.values()));
      std::vector<privacy::MaskKey> masks;
      for (const auto& offer : offers)
        masks.push_back(Must(exchange.AsDevice(offer, one.ticket.device, kEpoch)));
      const SigningKey key(privacy::KeyBytes(one.ticket.seed.values()));
      notices[at] = MakeNotice(
          {.kind = NoticeKind::kEnrolment,
           .epoch = kEpoch,
           .sender = one.ticket.device,
           .item = 0,
           .payload = BytesOf(
               Enrolment{.key = key.open(), .exchange = exchange.open(), .admission = one.ticket.signature})},
          id_, key);
      one.device.emplace(one.ticket.device, SigningKey(privacy::KeyBytes(one.ticket.seed.values())),
                         std::move(masks));
    });
    return notices;
  }

  // The reports of devices from `first` on, whose plain slots are added to the true sums.
  std::vector<Bytes> Report(size_t first, size_t count, const DrawnEpoch& draw) {
    std::vector<Bytes> reports(count);
    std::vector<std::vector<uint32_t>> messages(count);
    OnThreads(count, std::thread::hardware_concurrency(), [&](size_t at) {
      One& one = devices_[first + at];
      privacy::Random random = privacy::Random::FromSystem();
      const Assignment assignment = AssignmentOf(one.ticket.device, kEpoch, draw.beacon, draw.layout);
      Bins bins{};
      for (int i = 0; i < 4; ++i) bins[random.Next() % kBins] += 1;
      const Finding finding{
          .is_busy = true, .is_known = true, .application = static_cast<uint32_t>(random.Next() % 2)};
      messages[at] = MessageOf(finding, assignment, draw.layout, RoundToReport(bins));
      const auto report =
          Must(one.device->ReportMasked(kEpoch, assignment.place, privacy::Slots(messages[at]), random));
      reports[at].assign(report.begin(), report.end());
      one.device->Acknowledge();
    });
    for (size_t at = 0; at < count; ++at) {
      const Assignment assignment =
          AssignmentOf(devices_[first + at].ticket.device, kEpoch, draw.beacon, draw.layout);
      std::vector<int64_t>& sum = sums_[{assignment.place, assignment.cohort}];
      sum.resize(privacy::kReportSlots);
      for (size_t slot = 0; slot < sum.size(); ++slot) sum[slot] += messages[at][slot];
    }
    return reports;
  }

  // The largest difference of a released slot from the truth, in standard deviations of the noise.
  double LargestError(const Release& release) const {
    double largest = 0;
    for (const Release::List& list : release.lists) {
      const std::vector<int64_t>& sum = sums_.at({list.place, list.cohort});
      const auto deviation =
          static_cast<double>(fleet_.rules.sigma) * std::sqrt(static_cast<double>(list.answers));
      for (size_t slot = 0; slot < list.slots.size(); ++slot)
        largest = std::max(largest, std::abs(static_cast<double>(list.slots[slot] - sum[slot])) / deviation);
    }
    return largest;
  }

 private:
  struct One {
    Ticket ticket;
    std::optional<Device> device;
  };

  const Description& fleet_;
  const FleetId id_;
  std::vector<One> devices_;
  std::map<std::pair<uint32_t, uint32_t>, std::vector<int64_t>> sums_;
};

// Sends each over a connection of its own, as devices do. Returns the seconds it took.
double Send(const Aggregator& aggregator, const std::vector<Bytes>& messages,
            const std::function<Status(HttpBoard&, const Bytes&)>& send) {
  const int64_t begin_ns = MonotonicNow();
  OnThreads(messages.size(), kSenders, [&](size_t at) {
    HttpBoard board = aggregator.Connect();
    Must(send(board, messages[at]));
  });
  return Seconds(begin_ns);
}

uint64_t BytesIn(const std::string& folder) {
  uint64_t bytes = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) bytes += entry.file_size();
  return bytes;
}

void Measure(size_t count) {
  const Folder folder;
  const SigningKey authority = NewKey();
  std::vector<SigningKey> keys;
  for (size_t i = 0; i < kDecryptors; ++i) keys.push_back(NewKey());
  const Description fleet = MakeFleet(authority, keys, count);
  const Schedule schedule(fleet.period_s);
  std::atomic<int64_t> now_ms = schedule.BeginMs(kEpoch) - 1000;
  std::optional<Aggregator> aggregator(std::in_place, fleet, folder / "aggregate", now_ms);
  std::vector<DecryptorService> decryptors;
  for (size_t i = 0; i < kDecryptors; ++i)
    decryptors.push_back(Must(
        DecryptorService::Open(fleet, std::move(keys[i]), folder / fmt::format("decryptor{}", i), now_ms)));
  // The CPU time of the slowest decryptor's step.
  const auto step = [&] {
    double longest = 0;
    for (DecryptorService& decryptor : decryptors) {
      HttpBoard board = aggregator->Connect();
      const double before = OwnCpuSeconds();
      Must(decryptor.Step(board, now_ms));
      longest = std::max(longest, OwnCpuSeconds() - before);
    }
    return longest;
  };

  step();
  Devices devices(fleet, authority, count);
  HttpBoard reader = aggregator->Connect();
  const SignedEpoch offered = Must(SignedEpoch::Read(reader, kEpoch, fleet, fleet.Id()));
  const double enrolling_s =
      Send(*aggregator, devices.Enrol(offered.All(NoticeKind::kExchange).value()),
           [](HttpBoard& board, const Bytes& notice) { return board.PostNotice(notice); });

  now_ms = schedule.BeginMs(kEpoch) + 1000;
  const double enrolled_s = step();
  for (int i = 0; i < 2; ++i) step();  // commitments, parts

  now_ms = schedule.ReportsBeginMs(kEpoch) + 1000;
  const DrawnEpoch draw = Must(Must(SignedEpoch::Read(reader, kEpoch, fleet, fleet.Id())).Drawn());
  double reporting_s = 0, restart_s = 0;
  for (size_t first = 0; first < count; first += kAtOnce) {
    const std::vector<Bytes> reports = devices.Report(first, std::min(kAtOnce, count - first), draw);
    reporting_s += Send(*aggregator, reports, [](HttpBoard& board, const Bytes& report) -> Status {
      const std::string verdict = Must(board.PostReport(report));
      if (verdict == "accepted") return {};
      return Fail(ErrorCode::kInternal, "a report is " + verdict);
    });
  }
  const uint64_t journal_bytes = BytesIn(folder / "aggregate");
  aggregator.reset();
  const int64_t restart_ns = MonotonicNow();
  aggregator.emplace(fleet, folder / "aggregate", now_ms);
  restart_s = Seconds(restart_ns);

  now_ms = schedule.ReportsEndMs(kEpoch) + 1000;
  Must(aggregator->board().Tick(now_ms));
  step();  // agreements
  const double answered_s = step();
  if (decryptors.front().last_answered() != kEpoch) step();
  Must(aggregator->board().Tick(now_ms));
  const Release release = Must(ReadRelease(aggregator->board().releases_folder(), kEpoch));
  const double error = devices.LargestError(release);
  const auto released =
      std::ranges::count(release.lists, Outcome::kReleased, [](const auto& list) { return list.outcome; });
  if (error > kDeviations || released != std::ssize(release.lists) || release.lists.empty())
    Must(Fail(ErrorCode::kInternal,
              fmt::format("{} of {} lists are released, a slot is {} deviations off the truth", released,
                          release.lists.size(), error)));
  rusage use{};
  ::getrusage(RUSAGE_SELF, &use);
  const auto per_second = [&](double seconds) { return static_cast<double>(count) / seconds; };
  fmt::print(R"({{"devices": {}, "enrolments_per_s": {:.6g}, "enrolled_s": {:.6g}, "reports_per_s": {:.6g}, )"
             R"("journal_bytes": {}, "restart_s": {:.6g}, "answered_s": {:.6g}, "lists": {}, )"
             R"("largest_error_deviations": {:.6g}, "peak_bytes": {}}})"
             "\n",
             count, per_second(enrolling_s), enrolled_s, per_second(reporting_s), journal_bytes, restart_s,
             answered_s, release.lists.size(), error, int64_t{use.ru_maxrss} * 1024);
}

}  // namespace
}  // namespace gpusonde::fleet

int main(int argc, char** argv) {
  const auto devices = gpusonde::ParseNumber<size_t>(argc == 2 ? argv[1] : "");
  if (!devices.has_value() || *devices == 0) {
    fmt::print(stderr, "usage: bench_fleet_services DEVICES\n");
    return 2;
  }
  gpusonde::fleet::Measure(*devices);
  return 0;
}
