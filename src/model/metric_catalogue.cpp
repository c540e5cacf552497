// SPDX-License-Identifier: Apache-2.0
#include "model/metric_catalogue.h"

#include <fmt/format.h>

#include <algorithm>

namespace gpusonde::model {
namespace {

constexpr bool IsOrderly() {
  for (size_t i = 0; i < kMetricCatalogue.size(); ++i) {
    if (static_cast<size_t>(kMetricCatalogue[i].metric) != i) return false;
    if (i > 0 && kMetricCatalogue[i - 1].name >= kMetricCatalogue[i].name) return false;
  }
  return true;
}
static_assert(IsOrderly(), "the catalogue is in the order of the enumeration, which is that of the names");

struct Xid {
  int64_t code;
  std::string_view meaning;
};

constexpr std::array kXids = {
    Xid{13, "graphics engine exception: usually a bug in the program"},
    Xid{31, "memory page fault: usually a bug in the program"},
    Xid{32, "invalid or corrupted push buffer"},
    Xid{38, "driver firmware error"},
    Xid{43, "the device stopped a program's work: usually a bug in the program"},
    Xid{45, "work was removed, as after another error or the end of its program"},
    Xid{48, "double-bit ECC error"},
    Xid{61, "internal micro-controller breakpoint or warning"},
    Xid{62, "internal micro-controller halt"},
    Xid{63, "a page or row of memory is being taken out of use"},
    Xid{64, "a page or row of memory could not be taken out of use"},
    Xid{68, "video processor exception"},
    Xid{69, "graphics engine class error"},
    Xid{74, "NVLink error"},
    Xid{79, "the GPU has fallen off the bus"},
    Xid{92, "high rate of single-bit ECC errors"},
    Xid{94, "contained ECC error: one program ended"},
    Xid{95, "uncontained ECC error: every program on the device is affected"},
    Xid{109, "context switch timeout"},
    Xid{119, "the device's system processor (GSP) did not respond"},
    Xid{120, "error of the device's system processor (GSP)"},
    Xid{121, "error of the link between chips (C2C)"},
    Xid{140, "ECC error that could not be recovered from"},
    Xid{143, "the device could not be initialised"},
    Xid{154, "the device has to be reset or the node restarted"},
    Xid{999, "unknown error"},
};
static_assert(std::ranges::is_sorted(kXids, {}, &Xid::code));

}  // namespace

std::string SlowingReasons(uint64_t bits, bool with_meanings) {
  std::string text;
  for (const ThrottleReason& reason : kThrottleReasons) {
    if (!reason.slows || (bits & reason.bit) == 0) continue;
    if (!text.empty()) text += with_meanings ? "; " : ", ";
    text += reason.label;
    if (with_meanings) text += fmt::format(" ({})", reason.meaning);
  }
  return text;
}

std::optional<Metric> FindMetric(std::string_view name) {
  const auto found = std::ranges::lower_bound(kMetricCatalogue, name, {}, &MetricInfo::name);
  return found != kMetricCatalogue.end() && found->name == name ? std::optional(found->metric) : std::nullopt;
}

std::string_view LabelOf(std::string_view name) {
  const std::optional<Metric> known = FindMetric(name);
  return known.has_value() ? InfoOf(*known).label : name;
}

std::string_view XidMeaning(int64_t code) {
  const auto found = std::ranges::lower_bound(kXids, code, {}, &Xid::code);
  return found != kXids.end() && found->code == code ? found->meaning : std::string_view();
}

}  // namespace gpusonde::model
