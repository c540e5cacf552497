// SPDX-License-Identifier: Apache-2.0
#include "usage/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include "base/ascii.h"
#include "base/counted.h"
#include "base/json_writer.h"
#include "base/printable.h"
#include "base/text_table.h"
#include "base/time.h"

namespace gpusonde::usage {
namespace {

constexpr double kHourNs = 3600e9;
// In JSON.
constexpr size_t kMaxGroups = 1000;
constexpr size_t kMaxGaps = 100;
// In text.
constexpr size_t kGapsNamed = 5;
// Below this, hours would be zeros.
constexpr double kShortNs = 0.1 * kHourNs;

bool HasData(const Usage& usage) { return usage.range.from_ns < usage.range.to_ns; }

int64_t Rounded(double ns) { return std::llround(ns); }

double IdleCost(const model::HolderUse& use, double price) { return use.idle_ns / kHourNs * price; }

std::string NameOf(const Group& group, const SumBy& by) {
  if (!group.name.empty()) return Printable(group.name);
  return fmt::format("(no {})", by.by == By::kLabel ? "label " + Printable(by.label) : NameOf(by));
}

std::string Percent(double share) { return fmt::format("{:.0f} %", share * 100); }

// Sessions begin a moment after the first work: that little is not worth a column.
bool HasUnobserved(const model::HolderUse& use) { return use.unobserved_ns >= AccountableNs(use) / 1000; }

// "62 %", "62 % (55 to 70)" where it is an estimate that may be off by a percent, or "-".
std::string BusyShareText(const model::HolderUse& use) {
  const auto estimate = model::EstimateBusyShare(use);
  if (!estimate.has_value()) return "-";
  const auto low = Rounded(estimate->low * 100), high = Rounded(estimate->high * 100);
  return Percent(estimate->share) + (low < high ? fmt::format(" ({} to {})", low, high) : "");
}

// Text in a CSV file (RFC 4180). A cell that a spreadsheet would take for a formula begins with an
// apostrophe.
std::string Quoted(std::string text) {
  if (!text.empty() && std::string_view("=+-@").contains(text.front())) text.insert(0, 1, '\'');
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

class TextReport {
 public:
  TextReport(const Usage& usage, Price price) : usage_(usage), price_(price) {
    const double total_ns = AccountableNs(usage.Total().use);
    if (total_ns < kShortNs) {
      unit_ns_ = 1e9;
      unit_ = "seconds";
    }
  }

  std::string Headline() const {
    if (!HasData(usage_)) return "no data of this time";
    const Group total = usage_.Total();
    const double all_ns = AccountableNs(total.use);
    const auto part = [&](double ns, std::string_view what) {
      return fmt::format("{} {} ({})", Time(ns), what, Percent(ns / all_ns));
    };
    std::string line = fmt::format("{}{} to {} UTC, {}: ", usage_.simulated ? "simulated GPUs, " : "",
                                   FormatUtcSecond(usage_.range.from_ns), FormatUtcSecond(usage_.range.to_ns),
                                   Counted(static_cast<int64_t>(usage_.devices.size()), "GPU"));
    if (!(all_ns > 0)) return line + "no process held a GPU";
    line += fmt::format("held for {} GPU {}, {}, {}", Time(all_ns), unit_, part(total.use.busy_ns, "busy"),
                        part(total.use.idle_ns, "idle"));
    if (total.without_process_ns > 0)
      line += fmt::format(" of which {} allocated without a process", Time(total.without_process_ns));
    if (HasUnobserved(total.use)) line += ", " + part(total.use.unobserved_ns, "not observed");
    return line;
  }

  std::vector<TextColumn> Columns() const {
    TextColumn name{.title = ToUpper(Printable(NameOf(usage_.by))), .min_width = 12, .max_width = 256};
    TextColumn gpus{.title = "GPUS", .right = true, .leave_out = 5};
    TextColumn processes{.title = "PROCESSES", .right = true, .leave_out = 6};
    TextColumn held{.title = unit_ == "hours" ? "GPU HOURS" : "GPU SECONDS", .right = true};
    TextColumn busy{.title = "BUSY", .right = true, .leave_out = 1};
    TextColumn idle{.title = "IDLE", .right = true, .leave_out = 1};
    TextColumn no_process{.title = "NO PROCESS", .right = true, .leave_out = 4};
    TextColumn unobserved{.title = "NOT OBSERVED", .right = true, .leave_out = 3};
    TextColumn share{.title = "BUSY SHARE", .right = true, .leave_out = 2};
    TextColumn sampled{.title = "BY NVML", .right = true, .leave_out = 7};
    TextColumn cost{.title = "IDLE COST", .right = true};
    for (const Group& group : usage_.groups) {
      name.cells.push_back(NameOf(group, usage_.by));
      gpus.cells.push_back(std::to_string(group.devices.size()));
      processes.cells.push_back(std::to_string(group.processes.size()));
      held.cells.push_back(Time(AccountableNs(group.use)));
      busy.cells.push_back(Time(group.use.busy_ns));
      idle.cells.push_back(Time(group.use.idle_ns));
      no_process.cells.push_back(group.without_process_ns > 0 ? Time(group.without_process_ns) : "");
      unobserved.cells.push_back(HasUnobserved(group.use) ? Time(group.use.unobserved_ns) : "");
      share.cells.push_back(BusyShareText(group.use));
      const auto utilization = group.SampledUtilization();
      sampled.cells.push_back(utilization.has_value() ? Percent(*utilization) : "");
      cost.cells.push_back(price_.has_value() ? fmt::format("{:.2f}", IdleCost(group.use, *price_)) : "");
    }
    return {name, gpus, processes, held, busy, idle, no_process, unobserved, share, sampled, cost};
  }

 private:
  std::string Time(double ns) const { return fmt::format("{:.2f}", ns / unit_ns_); }

  const Usage& usage_;
  Price price_;
  double unit_ns_ = kHourNs;
  std::string_view unit_ = "hours";
};

void WriteShare(const model::HolderUse& use, JsonWriter& json) {
  const auto estimate = model::EstimateBusyShare(use);
  json.Key("busy_share");
  if (!estimate.has_value()) {
    json.Value(std::optional<double>());
    return;
  }
  json.BeginObject()
      .Field("value", estimate->share)
      .Field("low", estimate->low)
      .Field("high", estimate->high);
  json.EndObject();
}

void WriteGroup(const Group& group, Price price, JsonWriter& json) {
  json.Field("processes", static_cast<int64_t>(group.processes.size()));
  json.Field("devices", static_cast<int64_t>(group.devices.size()));
  json.Field("held_ns", group.use.held_ns);
  json.Field("accountable_ns", Rounded(AccountableNs(group.use)));
  json.Field("busy_ns", Rounded(group.use.busy_ns));
  json.Field("idle_ns", Rounded(group.use.idle_ns));
  json.Field("without_process_ns", Rounded(group.without_process_ns));
  json.Field("unobserved_ns", Rounded(group.use.unobserved_ns));
  WriteShare(group.use, json);
  json.Field("sampled_utilization", group.SampledUtilization());
  json.Field("idle_cost", price.has_value() ? std::optional(IdleCost(group.use, *price)) : std::nullopt);
}

// "200 hosts, summed until 2026-11-25 12:00:00 UTC, without: node-7 (not read yet) and 3 more"
std::string CoverageText(const Coverage& coverage) {
  std::string text = Counted(coverage.hosts, "host");
  if (coverage.until_ns.has_value())
    text += fmt::format(", summed until {} UTC", FormatUtcSecond(*coverage.until_ns));
  const size_t named = std::min(coverage.gaps.size(), kGapsNamed);
  for (size_t i = 0; i < named; ++i)
    text += fmt::format("{}{} ({})", i == 0 ? "; incomplete: " : ", ", Printable(coverage.gaps[i].host),
                        Printable(coverage.gaps[i].why));
  if (named < coverage.gaps.size()) text += fmt::format(" and {} more", coverage.gaps.size() - named);
  return text;
}

void WriteCoverage(const Coverage& coverage, JsonWriter& json) {
  json.BeginObject().Field("hosts", coverage.hosts);
  json.Field("until_us", coverage.until_ns.transform([](int64_t ns) { return ns / kNanosPerMicro; }));
  json.Key("gaps").BeginArray();
  const size_t written = std::min(coverage.gaps.size(), kMaxGaps);
  for (size_t i = 0; i < written; ++i)
    json.BeginObject().Field("host", coverage.gaps[i].host).Field("why", coverage.gaps[i].why).EndObject();
  json.EndArray().Field("gaps_omitted", static_cast<int64_t>(coverage.gaps.size() - written)).EndObject();
}

}  // namespace

std::string ToText(const Usage& usage, Price price, const Terminal& terminal) {
  const TextReport report(usage, price);
  std::string text = Wrap(report.Headline(), terminal.width, 2) + "\n";
  if (usage.coverage.has_value()) text += Wrap(CoverageText(*usage.coverage), terminal.width, 2) + "\n";
  if (usage.groups.empty()) return text;
  text += "\n";
  for (const std::string& line : LayOutTable(report.Columns(), terminal.width)) text += line + "\n";
  return text;
}

std::string ToCsv(const Usage& usage, Price price) {
  std::string csv = fmt::format(
      "{},gpus,processes,gpu_hours,busy_hours,idle_hours,unobserved_hours,busy_share,busy_share_low,"
      "busy_share_high,sampled_utilization,idle_cost,without_process_hours\r\n",
      usage.by.by == By::kLabel ? Quoted(Printable(NameOf(usage.by))) : NameOf(usage.by));
  for (const Group& group : usage.groups) {
    const auto estimate = model::EstimateBusyShare(group.use);
    csv += fmt::format("{},{},{},{:.6f},{:.6f},{:.6f},{:.6f},", Quoted(NameOf(group, usage.by)),
                       group.devices.size(), group.processes.size(), AccountableNs(group.use) / kHourNs,
                       group.use.busy_ns / kHourNs, group.use.idle_ns / kHourNs,
                       group.use.unobserved_ns / kHourNs);
    csv += estimate.has_value()
               ? fmt::format("{:.4f},{:.4f},{:.4f},", estimate->share, estimate->low, estimate->high)
               : ",,,";
    const auto utilization = group.SampledUtilization();
    csv += utilization.has_value() ? fmt::format("{:.4f},", *utilization) : ",";
    csv += price.has_value() ? fmt::format("{:.4f},", IdleCost(group.use, *price)) : ",";
    csv += fmt::format("{:.6f}\r\n", group.without_process_ns / kHourNs);
  }
  return csv;
}

std::string ToJson(const Usage& usage, Price price) {
  JsonWriter json;
  const auto micros = [&usage](int64_t ns) {
    return HasData(usage) ? std::optional(ns / kNanosPerMicro) : std::nullopt;
  };
  json.BeginObject().Field("from_us", micros(usage.range.from_ns));
  json.Field("to_us", micros(usage.range.to_ns));
  json.Field("by", NameOf(usage.by)).Field("simulated", usage.simulated);
  json.Field("gpus", static_cast<int64_t>(usage.devices.size())).Key("total").BeginObject();
  WriteGroup(usage.Total(), price, json);
  json.EndObject().Key("groups").BeginArray();
  const size_t written = std::min(usage.groups.size(), kMaxGroups);
  for (size_t i = 0; i < written; ++i) {
    json.BeginObject().Field("name", usage.groups[i].name);
    WriteGroup(usage.groups[i], price, json);
    json.EndObject();
  }
  json.EndArray().Key("labels").BeginArray();
  for (const std::string& label : usage.labels) json.Value(label);
  json.EndArray().Field("omitted", static_cast<int64_t>(usage.groups.size() - written));
  if (usage.coverage.has_value()) WriteCoverage(*usage.coverage, json.Key("coverage"));
  return json.EndObject().Take();
}

}  // namespace gpusonde::usage
