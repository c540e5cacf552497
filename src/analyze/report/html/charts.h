// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/report.h"

// Charts as inline SVG without text: the cells beside them have the figures, so they are hidden from screen
// readers. Colours are classes of the page's style (style.h).
namespace gpusonde::analyze {

// What a part of a bar means.
struct BarPart {
  std::string_view style;
  int64_t length = 0;  // negative ones count as 0
};

// Parts one after the other on a bar of the length `whole`, or of theirs, if that is more.
std::string Bar(std::span<const BarPart> parts, int64_t whole);

// Shares from 0 to 1 over equal windows, darker where larger; NaN: there is nothing.
std::string HeatStrip(std::span<const double> shares);

std::string Histogram(std::span<const DistributionLine::Bin> bins);

// A value with its interval on an axis from `from` to `to`, which is marked at `mark`.
std::string Interval(double low, double value, double high, double from, double to, double mark);

}  // namespace gpusonde::analyze
