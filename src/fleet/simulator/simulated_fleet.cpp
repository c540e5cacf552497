// SPDX-License-Identifier: Apache-2.0
#include "fleet/simulator/simulated_fleet.h"

#include <algorithm>
#include <atomic>
#include <numeric>
#include <utility>

#include "fleet/simulator/parallel.h"
#include "fleet/simulator/seeds.h"

namespace gpusonde::fleet {
namespace {

using privacy::KeyBytes;
using privacy::MaskKey;

// The number of devices enrolled between two progress reports.
constexpr size_t kStep = 2000;

// Both sides of a device's exchanges.
struct Enrolled {
  std::unique_ptr<Device> device;
  std::vector<MaskKey> with_decryptors;
};

}  // namespace

SimulatedFleet::SimulatedFleet(const Parameters& parameters, ReportKind kind, uint32_t epoch)
    : parameters_(parameters), kind_(kind), first_epoch_(epoch), devices_(parameters.devices) {
  privacy::MaskDecryptor::Rules rules;
  rules.min_reports = parameters.min_reports;
  rules.epsilon = parameters.epsilon;
  rules.delta = parameters.delta;
  rules.sigma = parameters.sigma;
  privacy::Random random = SeededRandom(parameters.seed, "common a");
  const privacy::Evaluated a = privacy::DrawUniform(random);
  std::vector<privacy::PublicKey> shares;
  for (uint32_t i = 0; i < parameters.decryptors; ++i) {
    const auto secret = SeedBytes(parameters.seed, "decryptor", i);
    if (kind == ReportKind::kMasked) {
      mask_decryptors_.emplace_back(rules, KeyBytes(secret.values()), epoch);
    } else {
      bfv_decryptors_.emplace_back(parameters.min_reports, KeyBytes(secret.values()));
      shares.push_back(bfv_decryptors_.back().MakePublic(a));
    }
  }
  if (!shares.empty()) joint_ = privacy::JoinKeys(shares);
}

Result<SimulatedFleet> SimulatedFleet::Create(const Parameters& parameters, ReportKind kind, uint32_t epoch,
                                              const Progress& progress) {
  SimulatedFleet fleet(parameters, kind, epoch);
  std::vector<size_t> places(fleet.size());
  std::iota(places.begin(), places.end(), size_t{0});
  TRY(fleet.Enrol(places, epoch, progress));
  return fleet;
}

Status SimulatedFleet::Enrol(std::span<const size_t> places, uint32_t epoch, const Progress& progress) {
  std::vector<ExchangeKey> decryptors;  // new in each epoch
  for (uint32_t i = 0; i < parameters_.decryptors; ++i)
    decryptors.emplace_back(KeyBytes(SeedBytes(parameters_.seed, "decryptor exchange", i, epoch).values()));
  const std::span<const size_t> all = places;
  while (!places.empty()) {
    const auto step = places.first(std::min(places.size(), kStep));
    std::vector<Enrolled> made(step.size());
    std::atomic<int64_t> spent_ns = 0;
    std::atomic<bool> failed = false;
    ForEachIndex(step.size(), parameters_.threads, [&](size_t i, size_t) {
      const int64_t begin_ns = ThreadTimeNs();
      const uint64_t id = next_id_ + i;
      const ExchangeKey exchange(KeyBytes(SeedBytes(parameters_.seed, "device exchange", id).values()));
      std::vector<MaskKey> own;
      if (kind_ == ReportKind::kMasked) {
        for (const ExchangeKey& decryptor : decryptors) {
          auto ours = exchange.AsDevice(decryptor.open(), id, epoch);
          auto theirs = decryptor.AsDecryptor(exchange.open(), id, epoch);
          if (!ours.has_value() || !theirs.has_value()) {
            failed = true;
            return;
          }
          own.push_back(*std::move(ours));
          made[i].with_decryptors.push_back(*std::move(theirs));
        }
      }
      made[i].device = std::make_unique<Device>(
          id, SigningKey(KeyBytes(SeedBytes(parameters_.seed, "device signing", id).values())),
          std::move(own));
      spent_ns += ThreadTimeNs() - begin_ns;
    });
    if (failed) return Fail(ErrorCode::kInternal, "simulation: a key exchange failed");
    for (size_t i = 0; i < step.size(); ++i) {
      const uint64_t id = next_id_++;
      for (size_t j = 0; j < made[i].with_decryptors.size(); ++j)
        TRY(mask_decryptors_[j].Enrol(id, std::move(made[i].with_decryptors[j])));
      TRY(directory_.Add(id, made[i].device->verify_key()));
      places_[id] = step[i];
      devices_[step[i]] = std::move(made[i].device);
    }
    enrol_ns_ += spent_ns;
    places = places.subspan(step.size());
    if (!progress("enrolling", 1 - static_cast<double>(places.size()) / static_cast<double>(all.size())) &&
        !places.empty())
      return Fail(ErrorCode::kUnavailable, "stopped while devices were being enrolled");
  }
  return {};
}

std::vector<int64_t> SimulatedFleet::NoiseIn(size_t decryptor, const privacy::ReportList& list) const {
  if (kind_ != ReportKind::kMasked) return std::vector<int64_t>(privacy::kReportSlots);
  const auto secret = SeedBytes(parameters_.seed, "decryptor", decryptor);
  const auto key = privacy::RatchetNoiseKey(KeyBytes(secret.values()), first_epoch_, list.epoch());
  return privacy::NoiseOf(KeyBytes(key.values()), list.hash(), parameters_.sigma);
}

Status SimulatedFleet::Replace(std::span<const size_t> places, uint32_t epoch) {
  for (const size_t place : places) {
    const uint64_t gone = devices_[place]->id();
    directory_.Remove(gone);
    places_.erase(gone);
    for (privacy::MaskDecryptor& decryptor : mask_decryptors_) decryptor.Remove(gone);
  }
  return Enrol(places, epoch, [](std::string_view, double) { return true; });
}

size_t SimulatedFleet::Expel(uint64_t device) {
  directory_.Remove(device);
  return places_.at(device);
}

}  // namespace gpusonde::fleet
