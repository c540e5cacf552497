// SPDX-License-Identifier: Apache-2.0
// The cost of encrypted reports, beside sums in the clear and Paillier's scheme.
#include <benchmark/benchmark.h>
#include <gmp.h>
#include <sodium.h>

#include <array>
#include <numeric>
#include <vector>

#include "fleet/privacy/bfv.h"
#include "fleet/privacy/decryptor.h"
#include "fleet/privacy/masks.h"
#include "fleet/private_match.h"
#include "fleet/roles/report.h"

namespace {

using namespace gpusonde;           // NOLINT(google-build-using-namespace): a program of its own
using namespace gpusonde::privacy;  // NOLINT(google-build-using-namespace)

std::array<uint8_t, kKeyBytes> SecretOf(uint64_t number) {
  std::array<uint8_t, kKeyBytes> secret{};
  for (size_t i = 0; i < sizeof number; ++i) secret[i] = static_cast<uint8_t>(number >> (8 * i));
  return secret;
}

MaskKey KeyOf(uint64_t device, uint64_t decryptor) {
  std::array<uint8_t, kKeyBytes> device_open{};
  std::array<uint8_t, kKeyBytes> decryptor_open{};
  crypto_scalarmult_base(device_open.data(), SecretOf(device).data());
  crypto_scalarmult_base(decryptor_open.data(), SecretOf(decryptor).data());
  return *MaskKey::FromExchange(SecretOf(device), device_open, decryptor_open, true, device, 1);
}

void MaskedReport(benchmark::State& state) {
  std::vector<MaskKey> keys;
  for (uint64_t decryptor = 2; decryptor < 5; ++decryptor) keys.push_back(KeyOf(1, decryptor));
  const std::vector<uint32_t> message(kReportSlots, 3);
  MaskUse use{.page = 1, .salt = {}};
  for (auto _ : state) {
    benchmark::DoNotOptimize(MaskReport(Slots(message), keys, use));
    ++use.page;
  }
  state.SetLabel("goal: <= 50 us");
}
BENCHMARK(MaskedReport)->Name("masked report, three decryptors")->Unit(benchmark::kMicrosecond);

void Signature(benchmark::State& state) {
  const std::array<uint8_t, 32> seed = SecretOf(5);
  const fleet::SigningKey key(seed);
  const std::vector<uint8_t> body(fleet::BodyBytes(fleet::ReportKind::kMasked), 7);
  for (auto _ : state) benchmark::DoNotOptimize(fleet::MakeReport({.device = 1}, body, key));
}
BENCHMARK(Signature)->Name("its signature (Ed25519 over BLAKE2b)")->Unit(benchmark::kMicrosecond);

void Verify(benchmark::State& state) {
  const std::array<uint8_t, 32> seed = SecretOf(5);
  const fleet::SigningKey key(seed);
  const std::vector<uint8_t> body(fleet::BodyBytes(fleet::ReportKind::kMasked), 7);
  const auto report = fleet::MakeReport({.device = 1}, body, key);
  for (auto _ : state) benchmark::DoNotOptimize(fleet::IsSigned(report, key.open()));
}
BENCHMARK(Verify)->Name("its verification")->Unit(benchmark::kMicrosecond);

void EncryptBfv(benchmark::State& state) {
  Random random = Random::FromSystem();
  const SecretKey secret = SecretKey::Generate(random);
  const PublicKey key = secret.MakePublic(random);
  const std::vector<uint64_t> message(kDegree, 255);
  for (auto _ : state) benchmark::DoNotOptimize(Encrypt(key, kReportBits, Plaintext(message), random));
  state.SetLabel("goal: <= 1000 us");
}
BENCHMARK(EncryptBfv)->Name("BFV encryption, 4,096 slots")->Unit(benchmark::kMicrosecond);

// The catalog server's work for one query among 1,000 applications.
void AnswerQuery(benchmark::State& state) {
  Random random = Random::FromSystem();
  fleet::Catalog catalog;
  for (int i = 0; i < 1'000; ++i) {
    auto& application = catalog.applications.emplace_back();
    for (int16_t& feature : application.fingerprint) feature = static_cast<int16_t>(random.Below(90));
  }
  const fleet::PrivateCatalog hidden(catalog);
  const fleet::PrivateMatcher matcher(random);
  const fleet::PrivateQuery query = matcher.Ask(catalog.applications[7].fingerprint, random);
  for (auto _ : state) benchmark::DoNotOptimize(hidden.Answer(query, random));
  size_t bytes = 0;
  const auto answers = hidden.Answer(query, random);
  for (const SwitchedAnswer& answer : answers.value()) bytes += Pack(answer).size();
  state.counters["answer_bytes"] = static_cast<double>(bytes);
  state.SetLabel("goal: <= 50 ms");
}
BENCHMARK(AnswerQuery)->Name("private identification among 1,000")->Unit(benchmark::kMillisecond);

// Much larger than any cache.
constexpr size_t kReports = 16'384;

const std::vector<uint32_t>& Reports() {
  static const std::vector<uint32_t> reports(kReports * kReportSlots, 5);
  return reports;
}

// All items are bytes read, so that ratios are ratios of bandwidths.
void ReadMemory(benchmark::State& state) {
  const std::vector<uint32_t>& reports = Reports();
  for (auto _ : state) {
    uint64_t sum = 0;
    const auto* words = reinterpret_cast<const uint64_t*>(reports.data());
    for (size_t i = 0; i < kReports * kReportSlots / 2; ++i) sum += words[i];
    benchmark::DoNotOptimize(sum);
  }
  state.SetItemsProcessed(state.iterations() *
                          static_cast<int64_t>(kReports * kReportSlots * sizeof(uint32_t)));
}
BENCHMARK(ReadMemory)->Name("memory read, bytes (peer)")->Unit(benchmark::kMillisecond);

void AddReports(benchmark::State& state) {
  const std::vector<uint32_t>& reports = Reports();
  for (auto _ : state) {
    MaskedSum sum;
    for (size_t i = 0; i < kReports; ++i)
      sum.Add(Slots(std::span(reports).subspan(i * kReportSlots, kReportSlots)));
    benchmark::DoNotOptimize(sum);
  }
  state.SetItemsProcessed(state.iterations() *
                          static_cast<int64_t>(kReports * kReportSlots * sizeof(uint32_t)));
}
BENCHMARK(AddReports)->Name("masked reports added, bytes")->Unit(benchmark::kMillisecond);

// Adding without encryption.
void AddPlain(benchmark::State& state) {
  const std::vector<uint32_t>& reports = Reports();
  for (auto _ : state) {
    std::vector<uint32_t> sum(kReportSlots);
    for (size_t i = 0; i < kReports; ++i)
      for (size_t slot = 0; slot < kReportSlots; ++slot) sum[slot] += reports[i * kReportSlots + slot];
    benchmark::DoNotOptimize(sum);
  }
  state.SetItemsProcessed(state.iterations() *
                          static_cast<int64_t>(kReports * kReportSlots * sizeof(uint32_t)));
}
BENCHMARK(AddPlain)->Name("plaintext reports added, bytes (peer)")->Unit(benchmark::kMillisecond);

void AddBfv(benchmark::State& state) {
  Random random = Random::FromSystem();
  const SecretKey secret = SecretKey::Generate(random);
  const PublicKey key = secret.MakePublic(random);
  const std::vector<uint64_t> message(kDegree, 255);
  Ciphertext sum = Encrypt(key, kReportBits, Plaintext(message), random);
  const Ciphertext report = Encrypt(key, kReportBits, Plaintext(message), random);
  for (auto _ : state) Add(sum, report);
}
BENCHMARK(AddBfv)->Name("BFV addition, 4,096 slots")->Unit(benchmark::kMicrosecond);

void AnswerForReports(benchmark::State& state) {
  constexpr uint64_t kDevices = 2'000;
  MaskDecryptor::Rules rules;
  std::vector<ReportList::Entry> entries;
  MaskDecryptor decryptor(rules, SecretOf(9), 1);
  for (uint64_t device = 1; device <= kDevices; ++device) {
    if (!decryptor.Enrol(device, KeyOf(device, 1'000'000)).has_value()) std::abort();
    entries.push_back({device, {}});
  }
  const ReportList list = *ReportList::Create(1, 1, entries);
  for (auto _ : state) benchmark::DoNotOptimize(decryptor.Answer(list));
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(kDevices));
}
BENCHMARK(AnswerForReports)->Name("a decryptor's answer, reports")->Unit(benchmark::kMillisecond);

// Paillier (1999) with a 3,072-bit modulus, as many 32-bit counters per ciphertext as fit, as in
// Penrose.
struct Paillier {
  static constexpr unsigned kBits = 3072;
  static constexpr unsigned kCounters = kBits / 32 - 1;

  Paillier() {
    gmp_randinit_default(random);
    mpz_inits(p, q, n, n2, message, noise, ciphertext, nullptr);
    do {
      for (auto* prime : {&p, &q}) {
        mpz_urandomb(*prime, random, kBits / 2);
        mpz_setbit(*prime, kBits / 2 - 1);
        mpz_nextprime(*prime, *prime);
      }
      mpz_mul(n, p, q);
    } while (mpz_cmp(p, q) == 0);
    mpz_mul(n2, n, n);
    mpz_urandomb(message, random, mp_bitcnt_t{kCounters} * 32);
    Encrypt();
  }
  ~Paillier() {
    mpz_clears(p, q, n, n2, message, noise, ciphertext, nullptr);
    gmp_randclear(random);
  }
  Paillier(const Paillier&) = delete;
  Paillier& operator=(const Paillier&) = delete;

  // (1 + m·n)·r^n modulo n².
  void Encrypt() {
    mpz_urandomm(noise, random, n);
    mpz_powm(noise, noise, n, n2);
    mpz_mul(ciphertext, message, n);
    mpz_add_ui(ciphertext, ciphertext, 1);
    mpz_mul(ciphertext, ciphertext, noise);
    mpz_mod(ciphertext, ciphertext, n2);
  }

  gmp_randstate_t random;
  mpz_t p, q, n, n2, message, noise, ciphertext;
};

void EncryptPaillier(benchmark::State& state) {
  Paillier paillier;
  for (auto _ : state) paillier.Encrypt();
  state.SetItemsProcessed(state.iterations() * Paillier::kCounters);
}
BENCHMARK(EncryptPaillier)
    ->Name("Paillier-3072 packed, counters encrypted (peer)")
    ->Unit(benchmark::kMillisecond);

void AddPaillier(benchmark::State& state) {
  Paillier paillier;
  mpz_t sum;
  mpz_init_set(sum, paillier.ciphertext);
  for (auto _ : state) {
    mpz_mul(sum, sum, paillier.ciphertext);
    mpz_mod(sum, sum, paillier.n2);
  }
  mpz_clear(sum);
  state.SetItemsProcessed(state.iterations() * Paillier::kCounters);
}
BENCHMARK(AddPaillier)->Name("Paillier-3072 packed, counters added (peer)")->Unit(benchmark::kMicrosecond);

}  // namespace
