// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "analyze/report.h"
#include "base/utf8.h"

namespace gpusonde::analyze {
namespace {

constexpr size_t kLinesShown = 20;
constexpr size_t kNameWidth = 70;

// 1234567 as "1.235 ms".
std::string Time(int64_t ns) {
  const auto value = static_cast<double>(ns);
  if (ns >= 1'000'000'000) return fmt::format("{:.3f} s", value / 1e9);
  if (ns >= 1'000'000) return fmt::format("{:.3f} ms", value / 1e6);
  if (ns >= 1'000) return fmt::format("{:.3f} µs", value / 1e3);
  return fmt::format("{} ns", ns);
}

// One line, as a terminal takes it: no control characters, cut at a character.
std::string Shown(std::string_view name) {
  std::string text = ToUtf8(name);
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = ' ';
  if (text.size() <= kNameWidth) return text;
  size_t cut = kNameWidth - 1;
  while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xC0) == 0x80) --cut;
  return text.substr(0, cut) + "…";
}

std::string Percent(int64_t part, int64_t whole) {
  return whole > 0 ? fmt::format("{:.1f} %", 100 * static_cast<double>(part) / static_cast<double>(whole))
                   : "–";
}

class TextWriter {
 public:
  explicit TextWriter(const Report& report) : report_(report) {}

  std::string Write() {
    Traces();
    Notes();
    Durations("Kernels", report_.kernels);
    Transfers("Copies", report_.memcpys);
    Transfers("Sets", report_.memsets);
    Durations("API calls", report_.api_calls);
    return std::move(out_);
  }

 private:
  template <class... Args>
  void Line(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
    out_ += '\n';
  }

  void Traces() {
    for (const TraceLine& trace : report_.traces) {
      Line(
          "{} ({}): {} events over {}: {} kernels ({} of kernel time), {} copies ({} bytes, {}), {} sets, {} "
          "API calls, "
          "{} ranges.",
          trace.path, trace.format, trace.events, Time(trace.duration_ns), trace.kernels,
          Time(trace.kernel_ns), trace.memcpys, trace.memcpy_bytes, Time(trace.memcpy_ns), trace.memsets,
          trace.api_calls, trace.ranges);
      if (trace.kernels + trace.memcpys + trace.memsets == 0) Line("  It has no GPU events.");
    }
  }

  void Notes() {
    for (const Note& note : report_.notes)
      Line("Note: {}: {}{}.", report_.traces[note.trace].path, note.kind,
           note.kind == "truncated" ? "" : fmt::format(" ({})", note.count));
  }

  void Durations(std::string_view title, const std::vector<DurationLine>& lines) {
    if (lines.empty()) return;
    int64_t whole = 0;
    for (const DurationLine& line : lines) whole += line.total_ns;
    Line("\n{}\n{:>12} {:>8} {:>9} {:>11} {:>11} {:>11} {:>11} {:>8}  name", title, "total", "share", "count",
         "mean", "p50", "p99", "max", "outliers");
    for (size_t i = 0; i < std::min(lines.size(), kLinesShown); ++i) {
      const DurationLine& line = lines[i];
      Line("{:>12} {:>8} {:>9} {:>11} {:>11} {:>11} {:>11} {:>8}  {}", Time(line.total_ns),
           Percent(line.total_ns, whole), line.count, Time(line.mean_ns), Time(line.p50_ns),
           Time(line.p99_ns), Time(line.max_ns), line.outliers, Shown(line.name));
    }
    if (lines.size() > kLinesShown) Line("… and {} more", lines.size() - kLinesShown);
  }

  void Transfers(std::string_view title, const std::vector<TransferLine>& lines) {
    if (lines.empty()) return;
    Line("\n{}\n{:>12} {:>9} {:>14} {:>11} {:>11} {:>11}  kind", title, "total", "count", "bytes", "p50",
         "max", "GB/s");
    for (const TransferLine& line : lines) {
      const DurationLine& times = line.durations;
      const double rate =
          times.total_ns > 0 ? static_cast<double>(line.bytes) / static_cast<double>(times.total_ns) : 0;
      Line("{:>12} {:>9} {:>14} {:>11} {:>11} {:>11.2f}  {} {} -> {}", Time(times.total_ns), times.count,
           line.bytes, Time(times.p50_ns), Time(times.max_ns), rate, line.kind, line.source, line.target);
    }
  }

  const Report& report_;
  std::string out_;
};

}  // namespace

std::string ToText(const Report& report) { return TextWriter(report).Write(); }

}  // namespace gpusonde::analyze
