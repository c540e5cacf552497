// SPDX-License-Identifier: Apache-2.0
#include "analyze/report/html/charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/int128.h"

namespace gpusonde::analyze {
namespace {

constexpr int64_t kWidth = 1000;
constexpr size_t kShades = 10;

std::string Svg(std::string_view style, int64_t width, int64_t height, std::string_view content) {
  return fmt::format("<svg class={} viewBox=\"0 0 {} {}\" preserveAspectRatio=none aria-hidden=true>{}</svg>",
                     style, width, height, content);
}

double At(double value, double from, double to) {
  const double share = to > from ? (value - from) / (to - from) : 0;
  return std::clamp(share, 0.0, 1.0) * kWidth;
}

}  // namespace

std::string Bar(std::span<const BarPart> parts, int64_t whole) {
  Int128 sum = 0;
  for (const BarPart& part : parts) sum += std::max<int64_t>(0, part.length);
  const Int128 length = std::max<Int128>({sum, whole, 1});
  std::string rects;
  Int128 at = 0;
  for (const BarPart& part : parts) {
    const Int128 end = at + std::max<int64_t>(0, part.length);
    const auto left = static_cast<int64_t>(at * kWidth / length);
    const auto right = static_cast<int64_t>(end * kWidth / length);
    if (right > left)
      rects += fmt::format("<rect class={} x={} width={} height=1 />", part.style, left, right - left);
    at = end;
  }
  return Svg("bar", kWidth, 1, rects);
}

std::string HeatStrip(std::span<const double> shares) {
  std::vector<std::string> paths(kShades + 1);
  for (size_t i = 0; i < shares.size();) {
    if (std::isnan(shares[i])) {
      ++i;
      continue;
    }
    const auto shade_of = [](double share) {
      return static_cast<size_t>(std::lround(std::clamp(share, 0.0, 1.0) * kShades));
    };
    const size_t shade = shade_of(shares[i]);
    const size_t begin = i;
    while (i < shares.size() && !std::isnan(shares[i]) && shade_of(shares[i]) == shade) ++i;
    paths[shade] += fmt::format("M{} 0h{}v1h-{}z", begin, i - begin, i - begin);
  }
  std::string content;
  for (size_t shade = 0; shade <= kShades; ++shade)
    if (!paths[shade].empty()) content += fmt::format("<path class=h{} d=\"{}\"/>", shade, paths[shade]);
  return Svg("strip", static_cast<int64_t>(shares.size()), 1, content);
}

std::string Histogram(std::span<const DistributionLine::Bin> bins) {
  constexpr int64_t kHeight = 100;
  int64_t most = 1;
  for (const DistributionLine::Bin& bin : bins) most = std::max(most, bin.count);
  std::string rects;
  for (size_t i = 0; i < bins.size(); ++i) {
    if (bins[i].count == 0) continue;
    // A single kernel among thousands, which may be the outlier that one looks for, is still to be seen.
    const auto height = std::max<int64_t>(2, static_cast<int64_t>(Int128{bins[i].count} * kHeight / most));
    rects +=
        fmt::format("<rect class=compute x={} y={} width=9 height={} />", i * 10, kHeight - height, height);
  }
  return Svg("histogram", static_cast<int64_t>(std::max<size_t>(1, bins.size()) * 10), kHeight, rects);
}

std::string Interval(double low, double value, double high, double from, double to, double mark) {
  const double left = At(low, from, to);
  const double right = At(high, from, to);
  const double at_mark = At(mark, from, to);
  return Svg("interval", kWidth, 10,
             fmt::format("<rect class=mark x={:.0f} width=2 height=10 /><rect class=range x={:.0f} y=4 "
                         "width={:.0f} height=2 /><rect class=value x={:.0f} y=1 width=8 height=8 />",
                         at_mark, left, std::max(2.0, right - left), At(value, from, to) - 4));
}

}  // namespace gpusonde::analyze
