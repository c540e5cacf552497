// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/time_range.h"

namespace gpusonde::model {

// Time of an account in equal blocks, from which intervals of estimates follow.
inline constexpr size_t kAccountBlocks = 60;
struct AccountBlock {
  double observed_ns = 0;  // busy or idle
  double busy_ns = 0;
};

// What a device's time comes to for one of its holders. Every instant at which processes hold the device is
// one of three kinds, and is shared equally:
struct HolderUse {
  double busy_ns = 0;        // work ran, and all holders were observed: by those whose work ran
  double idle_ns = 0;        // no work ran, and all holders were observed: by the holders
  double unobserved_ns = 0;  // some holder was not observed, so who worked is unknown: by the holders
  int64_t held_ns = 0;       // in which it held the device, alone or with others
  std::array<AccountBlock, kAccountBlocks> blocks{};

  HolderUse& operator+=(const HolderUse& more);
};

// Divides the time of one device among the processes that hold it, so that the parts sum to the whole: those
// busy to the time in which any work ran, all three to the time in which anybody held the device. Kernels of
// several processes that overlap (time-slicing, MPS) share each instant equally, because it is unknown
// how the hardware divided it.
//
// Each share is a difference of integrals: where n(t) processes hold an idle device, a holder's idle time is
// the integral of dt / n(t) over the time in which it holds it. This takes O(n log n) time whatever overlaps.
class DeviceAccount {
 public:
  struct Holder {
    std::vector<TimeRange> held;      // sorted, disjoint
    std::vector<TimeRange> observed;  // when its work was recorded; sorted, disjoint
  };
  // Accounts for the range, which is not empty, in kAccountBlocks blocks.
  DeviceAccount(std::span<const Holder> holders, const TimeRange& range);
  // In as many blocks of this length, whole minutes, as the range has from its begin on.
  DeviceAccount(std::span<const Holder> holders, const TimeRange& range, int64_t block_ns);

  // Adds the times in which work of each holder ran, in the constructor's order: sorted, disjoint, for time
  // that no other call covers. Time in which the device isn't held, or some holder isn't observed, is
  // left out.
  void AddBusy(std::span<const std::vector<TimeRange>> by_holder);

  // Whether a window of time can be added as a sum, because nothing changes during it.
  bool IsEven(const TimeRange& window) const;
  // Adds such a window, in which work of only this holder ran for so long.
  void AddBusySum(size_t holder, const TimeRange& window, int64_t busy_ns);

  // The time in which all holders were observed, sorted and disjoint.
  std::vector<TimeRange> Observed() const;

  // In the constructor's order. Only of an account in kAccountBlocks blocks.
  std::vector<HolderUse> Uses() const;

  // The parts of a use that fall into one block.
  struct BlockUse {
    size_t block = 0;
    double busy_ns = 0;
    double idle_ns = 0;
    double unobserved_ns = 0;
    int64_t held_ns = 0;
  };
  // Of each holder, in the constructor's order: the blocks in which it held the device, by number.
  std::vector<std::vector<BlockUse>> UsesByBlock() const;

 private:
  // Adjacent blocks of one length from a time on.
  struct Blocks {
    int64_t from_ns = 0;
    int64_t length_ns = 0;
    size_t count = 0;
  };
  static Blocks EqualBlocks(const TimeRange& range);
  DeviceAccount(std::span<const Holder> holders, const TimeRange& range, const Blocks& blocks);
  // Time without a change of who holds the device and whether all are observed, within one block.
  struct Segment {
    TimeRange range;
    double holders = 0;
    bool observed = false;
    double busy_ns = 0;
  };
  size_t BlockOf(int64_t time_ns) const;
  TimeRange Block(size_t number) const;
  size_t SegmentAt(int64_t time_ns) const;
  void AddBusyOfBlock(std::span<const std::vector<TimeRange>> by_holder, size_t block);

  const Blocks blocks_;
  std::vector<std::vector<TimeRange>> held_;  // within the range
  std::vector<Segment> segments_;             // sorted, disjoint
  std::vector<std::vector<double>> busy_ns_;  // of each holder, by block
};

// The share of a holder's time, or of several holders' together, in which its work ran.
struct BusyShare {
  double share = 0;  // 0…1
  double low = 0;    // interval, if some of the time was not observed; else the share
  double high = 0;
};
// Estimates it for all of the time from what was observed; null if nothing was. The interval is never wider
// than what is certain: work ran in none, or in all, of the time that was not observed. With observed time in
// ten blocks or more, it is the 95 % interval that takes these blocks for a random sample of all, where that
// is narrower (ratio estimator, W. G. Cochran: Sampling Techniques, 3rd edition, 1977, section 6.4, with the
// finite population correction).
std::optional<BusyShare> EstimateBusyShare(const HolderUse& use);

}  // namespace gpusonde::model
