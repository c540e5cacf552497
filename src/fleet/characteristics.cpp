// SPDX-License-Identifier: Apache-2.0
#include "fleet/characteristics.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <unordered_map>

#include "fleet/kernel_name.h"

namespace gpusonde::fleet {
namespace {

// Logarithmic bins [first, first + count) of a histogram, each `octaves` wide: values below `from` are in the
// first, values beyond the range in the last. The logarithm to base 2 is exact for sizes that are powers of
// two, which are the most frequent, and at the edges.
struct LogSection {
  size_t first;
  size_t count;
  double from;
  double octaves;

  size_t BinOf(double value) const {
    if (!(value > from)) return first;
    const double step = std::floor(std::log2(value / from) / octaves);
    return first + static_cast<size_t>(std::min(step, static_cast<double>(count - 1)));
  }
};

// The same for shares from 0 to 1.
struct ShareSection {
  size_t first;
  size_t count;

  size_t BinOf(double share) const {
    if (!(share > 0)) return first;
    const double step = std::floor(std::min(share, 1.0) * static_cast<double>(count));
    return first + static_cast<size_t>(std::min(step, static_cast<double>(count - 1)));
  }
};

constexpr size_t kThird = (kBins - 1) / 3;  // 20 bins for each of three things
constexpr size_t kHalf = (kBins - 1) / 2;   // 31 for each of two

// A kernel's type, by the first of these words that is part of a word of its name, in this order.
struct KernelType {
  std::string_view word;
  size_t bin;
};
constexpr std::array kKernelTypes = std::to_array<KernelType>({
    {"nccl", 1},    {"rccl", 1},       {"allreduce", 1},    {"flash", 2},     {"attention", 2},
    {"fmha", 2},    {"conv", 3},       {"fprop", 3},        {"dgrad", 3},     {"wgrad", 3},
    {"cudnn", 3},   {"winograd", 3},   {"gemm", 4},         {"gemv", 4},      {"cutlass", 4},
    {"matmul", 4},  {"splitk", 4},     {"fft", 5},          {"layernorm", 6}, {"batchnorm", 6},
    {"rmsnorm", 6}, {"norm", 6},       {"softmax", 7},      {"embedding", 8}, {"index", 8},
    {"gather", 8},  {"scatter", 8},    {"sort", 9},         {"topk", 9},      {"radix", 9},
    {"scan", 10},   {"reduce", 11},    {"dropout", 12},     {"random", 12},   {"distribution", 12},
    {"adam", 13},   {"optimizer", 13}, {"multitensor", 13}, {"pool", 14},     {"copy", 15},
    {"cat", 15},    {"transpose", 15}, {"nchw", 15},        {"fill", 16},     {"elementwise", 17},
    {"triton", 18}, {"stencil", 19},   {"halo", 19},        {"update", 19},
});
constexpr size_t kOtherType = 20;

size_t TypeOf(std::string_view name) {
  const std::vector<std::string> words = KernelWords(name);
  for (const KernelType& type : kKernelTypes)
    for (const std::string& word : words)
      if (word.find(type.word) != std::string::npos) return type.bin;
  return kOtherType;
}

double Time(const GpuWork::Kernel& kernel) {
  return static_cast<double>(std::max<int64_t>(kernel.duration_ns, 0));
}

void KernelTypes(const GpuWork& work, Bins& bins) {
  std::unordered_map<std::string_view, size_t> types;  // caches the types of names
  for (const GpuWork::Kernel& kernel : work.kernels) {
    const auto [type, is_new] = types.try_emplace(kernel.name, 0);
    if (is_new) type->second = TypeOf(kernel.name);
    bins[type->second] += Time(kernel);
  }
}

void KernelDurations(const GpuWork& work, Bins& bins) {
  constexpr LogSection kSection{.first = 1, .count = kBins - 1, .from = 256, .octaves = 0.5};
  for (const GpuWork::Kernel& kernel : work.kernels) bins[kSection.BinOf(Time(kernel))] += 1;
}

void LaunchShapes(const GpuWork& work, Bins& bins) {
  constexpr LogSection kBlocks{.first = 1, .count = kHalf, .from = 1, .octaves = 1};
  constexpr ShareSection kThreads{.first = 1 + kHalf, .count = kHalf};
  for (const GpuWork::Kernel& kernel : work.kernels) {
    bins[kBlocks.BinOf(static_cast<double>(kernel.blocks))] += Time(kernel);
    bins[kThreads.BinOf(kernel.threads_per_block / 1024.0)] += Time(kernel);
  }
}

// Limits of an SM of compute capability 8.0 (CUDA C++ programming guide, technical specifications), used for
// all devices, so that their rows can be added.
constexpr double kSmThreads = 2048;
constexpr double kSmRegisters = 65'536;
constexpr double kSmSharedBytes = 164 * 1024;
constexpr double kSmBlocks = 32;

double TheoreticalOccupancy(const GpuWork::Kernel& kernel) {
  const double threads = std::max<uint32_t>(kernel.threads_per_block, 1);
  double blocks = std::min(kSmBlocks, std::floor(kSmThreads / threads));
  if (kernel.registers_per_thread > 0)
    blocks = std::min(blocks, std::floor(kSmRegisters / (threads * kernel.registers_per_thread)));
  if (kernel.shared_bytes_per_block > 0)
    blocks = std::min(blocks, std::floor(kSmSharedBytes / kernel.shared_bytes_per_block));
  return blocks * threads / kSmThreads;
}

void Occupancy(const GpuWork& work, Bins& bins) {
  constexpr ShareSection kSection{.first = 1, .count = kBins - 1};
  for (const GpuWork::Kernel& kernel : work.kernels)
    bins[kSection.BinOf(TheoreticalOccupancy(kernel))] += Time(kernel);
}

void RegistersAndShared(const GpuWork& work, Bins& bins) {
  constexpr ShareSection kRegisters{.first = 1, .count = kHalf};
  constexpr LogSection kShared{.first = 1 + kHalf, .count = kHalf, .from = 128, .octaves = 0.5};
  for (const GpuWork::Kernel& kernel : work.kernels) {
    const bool known = kernel.registers_per_thread > 0;
    bins[known ? kRegisters.BinOf(kernel.registers_per_thread / 256.0) : 0] += Time(kernel);
    bins[kShared.BinOf(kernel.shared_bytes_per_block)] += Time(kernel);
  }
}

size_t FirstBinOf(GpuWork::Direction direction) { return 1 + kThird * static_cast<size_t>(direction); }

void CopySizes(const GpuWork& work, Bins& bins) {
  for (const GpuWork::Copy& copy : work.copies) {
    const LogSection section{
        .first = FirstBinOf(copy.direction), .count = kThird, .from = 2048, .octaves = 1};
    bins[section.BinOf(static_cast<double>(copy.bytes))] += 1;
  }
}

void CopyRates(const GpuWork& work, Bins& bins) {
  for (const GpuWork::Copy& copy : work.copies) {
    if (copy.duration_ns <= 0 || copy.bytes <= 0) continue;
    const LogSection section{
        .first = FirstBinOf(copy.direction), .count = kThird, .from = 4.0e6, .octaves = 1};
    const auto bytes = static_cast<double>(copy.bytes);
    bins[section.BinOf(bytes * 1e9 / static_cast<double>(copy.duration_ns))] += bytes;
  }
}

void AddThree(Bins& bins, double a, double b, double c) {
  bins[ShareSection{.first = 1, .count = kThird}.BinOf(a)] += 1;
  bins[ShareSection{.first = 1 + kThird, .count = kThird}.BinOf(b)] += 1;
  bins[ShareSection{.first = 1 + 2 * kThird, .count = kThird}.BinOf(c)] += 1;
}

void UnitActivity(const GpuWork& work, Bins& bins) {
  for (const GpuWork::Activity& reading : work.activity)
    AddThree(bins, reading.sm, reading.tensor, reading.dram);
}

void CopiedValues(const GpuWork& work, Bins& bins) {
  for (const GpuWork::Values& values : work.values)
    AddThree(bins, values.zeros, values.repeats, values.exponent_range / 256);
}

constexpr std::array kCharacteristics = {
    Characteristic{"kernel_types",
                   "GPU time by type of kernel: communication, attention, convolution, GEMM, …, other",
                   KernelTypes},
    Characteristic{"kernel_durations", "kernels by duration: half octaves from 256 ns", KernelDurations},
    Characteristic{"launch_shapes",
                   "GPU time by blocks (octaves) and by threads per block (31 steps to 1,024)", LaunchShapes},
    Characteristic{"occupancy", "GPU time by theoretical occupancy of an SM of capability 8.0: 62 steps",
                   Occupancy},
    Characteristic{
        "registers_and_shared",
        "GPU time by registers per thread (31 steps to 256; bin 0: not known) and by shared memory per "
        "block (half octaves from 128 bytes)",
        RegistersAndShared},
    Characteristic{"copy_sizes", "copies by bytes: octaves from 2 KiB, to, from and within the device",
                   CopySizes},
    Characteristic{"copy_rates", "bytes copied by rate: octaves from 4 MB/s, to, from and within the device",
                   CopyRates},
    Characteristic{"unit_activity",
                   "readings of counters: share of time in which SMs, tensor cores and DRAM worked, "
                   "20 steps each",
                   UnitActivity},
    Characteristic{"copied_values",
                   "sampled copies: share of zeros, share of repeats, range of exponents, 20 steps each",
                   CopiedValues, true},
};

}  // namespace

std::span<const Characteristic> Characteristics() { return kCharacteristics; }

uint32_t OpenCharacteristics() {
  return static_cast<uint32_t>(std::ranges::count(kCharacteristics, false, &Characteristic::opt_in));
}

Row Measure(uint32_t group, const GpuWork& work) {
  Bins bins{};
  kCharacteristics[group].measure(work, bins);
  return RoundToReport(bins);
}

GpuWork::Values ProfileValues(std::span<const float> values) {
  if (values.empty()) return {};
  size_t zeros = 0;
  size_t repeats = 0;
  int lowest = std::numeric_limits<int>::max();
  int highest = std::numeric_limits<int>::min();
  for (size_t i = 0; i < values.size(); ++i) {
    if (i > 0 && values[i] == values[i - 1]) ++repeats;
    if (values[i] == 0) ++zeros;
    if (values[i] == 0 || !std::isfinite(values[i])) continue;
    const int exponent = std::ilogb(values[i]);
    lowest = std::min(lowest, exponent);
    highest = std::max(highest, exponent);
  }
  const auto count = static_cast<double>(values.size());
  return {.zeros = static_cast<double>(zeros) / count,
          .repeats = static_cast<double>(repeats) / count,
          .exponent_range = highest < lowest ? 0.0 : std::min(highest - lowest, 255)};
}

}  // namespace gpusonde::fleet
