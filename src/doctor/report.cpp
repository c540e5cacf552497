// SPDX-License-Identifier: Apache-2.0
#include "doctor/report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/utsname.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/version.h"

namespace gpusonde::doctor {
namespace {

constexpr std::array kUses = {
    std::pair{Use::kRecord, "To record and to watch this machine (gpusonde record, up)"},
    std::pair{Use::kDetail, "To see more"},
    std::pair{Use::kGpu, "To see GPUs"},
    std::pair{Use::kScale, "To analyse traces over many processes"},
};

constexpr size_t kMinWhyWidth = 20;  // characters, however narrow the terminal is

constexpr std::string_view kWorks = "works";
constexpr std::string_view kDoesNot = "doesn't";

// Indents `text` to a column that begins at `indent`, one line of output per line of text.
std::string Indented(std::string_view text, size_t indent) {
  std::string lines;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    if (at > 0) lines += fmt::format("\n{:{}}", "", indent);
    lines += text.substr(at, end - at);
    at = end + 1;
  }
  return lines;
}

// Advice, printed once for all capabilities that it fixes.
struct Advice {
  std::string_view what_to_do;
  std::vector<std::string_view> names;
};

void Collect(std::vector<Advice>& advice, const Capability& capability, const Finding& finding) {
  const auto same = std::ranges::find(advice, finding.what_to_do, &Advice::what_to_do);
  if (same == advice.end())
    advice.push_back({finding.what_to_do, {capability.name}});
  else
    same->names.push_back(capability.name);
}

}  // namespace

bool Report::CanRecord() const {
  return std::ranges::all_of(examined, [](const Examined& each) {
    return each.finding.works || each.capability->use != Use::kRecord;
  });
}

Report Examine(const Settings& settings) {
  Report report;
  utsname system{};
  if (::uname(&system) == 0) {
    report.host = system.nodename;
    report.kernel = system.release;
  }
  for (const Capability& capability : AllCapabilities())
    report.examined.push_back({&capability, capability.probe(settings)});
  return report;
}

std::string FormatText(const Report& report, const Terminal& terminal) {
  size_t name_width = 0;
  for (const Examined& each : report.examined)
    name_width = std::max(name_width, each.capability->name.size());
  const size_t why_column = 2 + name_width + 2 + kDoesNot.size() + 2;
  const size_t why_width =
      terminal.width == 0 ? 0 : std::max(terminal.width, why_column + kMinWhyWidth) - why_column;

  std::string text = fmt::format("gpusonde {} on {}, Linux {}\n", kVersion, report.host, report.kernel);
  for (const auto& [use, title] : kUses) {
    text += fmt::format("\n{}\n", title);
    std::vector<Advice> advice;
    for (const auto& [capability, finding] : report.examined) {
      if (capability->use != use) continue;
      const std::string word = fmt::format("{:<{}}", finding.works ? kWorks : kDoesNot, kDoesNot.size());
      text += fmt::format("  {:<{}}  {}  {}\n", capability->name, name_width,
                          terminal.Paint(finding.works ? Style::kGreen : Style::kRed, word),
                          Indented(Wrap(finding.why, why_width, 0), why_column));
      if (!finding.works) Collect(advice, *capability, finding);
    }
    for (const Advice& each : advice)
      text += Wrap(fmt::format("  → for {}: {}\n", fmt::join(each.names, ", "), Indented(each.what_to_do, 4)),
                   terminal.width, 4);
  }
  std::vector<std::string_view> missing;
  for (const auto& [capability, finding] : report.examined)
    if (capability->use == Use::kRecord && !finding.works) missing.push_back(capability->name);
  text += missing.empty() ? "\n`gpusonde record` works on this machine.\n"
                          : fmt::format("\n`gpusonde record` does not work here; it needs {}.\n",
                                        fmt::join(missing, ", "));
  return text;
}

std::string FormatJson(const Report& report) {
  // An ordered object keeps its keys in a sensible reading order.
  nlohmann::ordered_json capabilities = nlohmann::ordered_json::array();
  for (const auto& [capability, finding] : report.examined)
    capabilities.push_back({{"name", capability->name},
                            {"use", Name(capability->use)},
                            {"works", finding.works},
                            {"why", finding.why},
                            {"what_to_do", finding.what_to_do}});
  const nlohmann::ordered_json json = {{"version", 1},
                                       {"gpusonde", kVersion},
                                       {"host", report.host},
                                       {"kernel", report.kernel},
                                       {"can_record", report.CanRecord()},
                                       {"capabilities", capabilities}};
  // Messages of the dynamic loader may not be UTF-8.
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace gpusonde::doctor
