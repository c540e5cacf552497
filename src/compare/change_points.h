// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <span>

namespace gpusonde::compare {

// A stretch of a sequence, [from, to), and how its mean differs from that of the rest.
struct Stretch {
  size_t from = 0;  // not 0
  size_t to = 0;    // the length of the sequence: a change that lasts
  double difference = 0;
  double error = 0;    // of that
  double freedom = 0;  // of Student's t
  double p = 1;        // of so large a difference of any stretch, if the true one is at most the margin
};

// A change lasts for two runs at least, as do the times before and after it: one run alone may be an outlier.
inline constexpr size_t kMinRunsOfStretch = 2;

// How values [from, to) differ from the others, without p. Requires three values, some of them outside.
Stretch MeasureStretch(std::span<const double> values, size_t from, size_t to);

// The stretch for which Student's t is largest, beyond a margin. Of those that reach the end this is the
// likelihood-ratio test for a shift in location of independent normal values (Worsley 1979, "On the
// likelihood ratio test for a shift in location of normal populations", JASA 74), of those in the middle its
// form for a shift that is taken back (Levin and Kline 1985; Olshen et al. 2004 use it for binary
// segmentation). Each kind has half of p, bounded by the sum over all places (Bonferroni), so chance is below
// p. Empty for less than four values. Pure. Time: the square of the number of values.
std::optional<Stretch> FindStretch(std::span<const double> values, double margin);

}  // namespace gpusonde::compare
