// SPDX-License-Identifier: Apache-2.0
#include "analyze/timeline/kernel_sequences.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "base/saturated.h"

namespace gpusonde::analyze {
namespace {

// Whether the sequence is a shorter one at least twice, such as A B A B and also A B A B A.
bool IsRepetition(std::span<const uint32_t> names) {
  for (size_t period = 1; 2 * period <= names.size(); ++period)
    if (std::ranges::equal(names.subspan(period), names.first(names.size() - period))) return true;
  return false;
}

}  // namespace

SequenceFollower::Stream* SequenceFollower::StreamOf(uint32_t stream) {
  if (streams_.size() == kMaxStreams && !streams_.contains(stream)) return nullptr;
  return &streams_[stream];
}

void SequenceFollower::Add(const GpuRecord& event) {
  Stream* const stream = StreamOf(event.stream);
  if (stream == nullptr) {
    if (event.work == importers::GpuWork::kKernel) ++beyond_bound_;
    return;
  }
  if (event.work != importers::GpuWork::kKernel) {
    stream->in_a_row = 0;
    return;
  }
  const uint64_t place = stream->kernels++;
  const auto at = [&](uint64_t kernel) -> Kernel& { return stream->last[kernel % stream->last.size()]; };
  at(place) = {.name = event.name, .start_ns = event.start_ns, .end_ns = event.end_ns};
  stream->in_a_row = std::min(stream->in_a_row + 1, KernelSequence::kMaxKernels);
  uint64_t hash = MixBits(name_hashes_[event.name] ^ MixBits(event.stream));
  int64_t kernel_ns = event.end_ns - event.start_ns;
  int64_t gap_ns = 0;
  for (uint64_t length = 2; length <= stream->in_a_row; ++length) {
    const uint64_t first = place + 1 - length;
    hash = MixBits(hash ^ name_hashes_[at(first).name]);
    kernel_ns = AddSaturated(kernel_ns, at(first).end_ns - at(first).start_ns);
    gap_ns = AddSaturated(gap_ns, std::max<int64_t>(0, at(first + 1).start_ns - at(first).end_ns));
    bool is_new = false;
    Sums& sums = sums_.At(hash, is_new);
    if (is_new) {
      sums.length = static_cast<uint32_t>(length);
      sums.first_ns = at(first).start_ns;
      for (uint64_t i = 0; i < length; ++i) sums.names[i] = at(first + i).name;
    }
    if (sums.length > 0) {
      if (first < sums.free_from) continue;  // it overlaps the previous occurrence
      sums.free_from = place + 1;
      sums.kernel_ns = AddSaturated(sums.kernel_ns, kernel_ns);
      sums.gap_ns = AddSaturated(sums.gap_ns, gap_ns);
    }
    ++sums.count;
  }
}

std::vector<KernelSequence> SequenceFollower::SumOverStreams() const {
  std::map<std::vector<uint32_t>, KernelSequence> all;
  for (const auto& [hash, sums] : sums_.entries()) {
    std::vector<uint32_t> names(sums.names.begin(), sums.names.begin() + sums.length);
    const auto [place, is_new] = all.try_emplace(names);
    KernelSequence& sequence = place->second;
    if (is_new) {
      sequence.names = std::move(names);
      sequence.first_ns = sums.first_ns;
    }
    sequence.first_ns = std::min(sequence.first_ns, sums.first_ns);
    sequence.count += sums.count;
    sequence.kernel_ns = AddSaturated(sequence.kernel_ns, sums.kernel_ns);
    sequence.gap_ns = AddSaturated(sequence.gap_ns, sums.gap_ns);
  }
  std::vector<KernelSequence> sequences;
  for (auto& [names, sequence] : all) sequences.push_back(std::move(sequence));
  return sequences;
}

RankSequences SequenceFollower::Finish() && {
  sums_.Finish();
  RankSequences result{.sequences = {}, .beyond_bound = beyond_bound_ + sums_.other().count};
  std::vector<KernelSequence> all = SumOverStreams();
  std::erase_if(all, [](const KernelSequence& sequence) {
    return sequence.count < kMinCount || IsRepetition(sequence.names);
  });
  const auto before = [this](const KernelSequence& a, const KernelSequence& b) {
    const auto key = [](const KernelSequence& one) {
      return std::tuple(-AddSaturated(one.kernel_ns, one.gap_ns), one.names.size(), one.first_ns);
    };
    if (key(a) != key(b)) return key(a) < key(b);
    // Numbers of names depend on who read the trace, their hashes don't.
    const auto hash = [this](uint32_t name) { return name_hashes_[name]; };
    return std::ranges::lexicographical_compare(a.names, b.names, {}, hash, hash);
  };
  std::ranges::sort(all, before);
  std::set<std::pair<uint32_t, uint32_t>> listed;  // neighbours
  for (KernelSequence& sequence : all) {
    if (result.sequences.size() == RankSequences::kMaxSequences) break;
    std::vector<std::pair<uint32_t, uint32_t>> pairs;
    for (size_t i = 1; i < sequence.names.size(); ++i)
      pairs.emplace_back(sequence.names[i - 1], sequence.names[i]);
    if (std::ranges::any_of(pairs, [&listed](const auto& pair) { return listed.contains(pair); })) continue;
    listed.insert(pairs.begin(), pairs.end());
    listed.emplace(sequence.names.back(), sequence.names.front());  // of a loop's next round
    result.sequences.push_back(std::move(sequence));
  }
  return result;
}

}  // namespace gpusonde::analyze
