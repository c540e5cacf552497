// SPDX-License-Identifier: Apache-2.0
#include "fleet/service/results.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "base/counted.h"
#include "base/json_writer.h"
#include "base/text_table.h"
#include "base/time.h"
#include "fleet/characteristics.h"
#include "fleet/histogram.h"
#include "fleet/roles/message.h"
#include "fleet/roles/release.h"
#include "fleet/unknown.h"

namespace gpusonde::fleet {
namespace {

constexpr int kResultsVersion = 1;
constexpr size_t kWidth = 80;

using privacy::kReportWeight;
using privacy::kRowSlots;

// The places of a row: of one page for an application, of all for the idle and unknown.
Results::Share ShareOf(std::string name, uint32_t row, uint32_t first_page, uint32_t end_page,
                       const Description& description, const Histograms& sums) {
  const Layout layout = description.layout();
  const auto places_of_row = static_cast<double>(layout.groups * (end_page - first_page));
  const double part = places_of_row / layout.places();  // of the devices are drawn for these places
  Results::Share share{.name = std::move(name), .histograms = {}};
  double contributors = 0;
  uint64_t answers = 0;
  for (uint32_t page = first_page; page < end_page; ++page) {
    for (uint32_t group = 0; group < layout.groups; ++group) {
      const uint32_t place = page * layout.groups + group;
      const double here = sums.Contributors(place, row);
      contributors += here;
      answers += sums.answers(place);
      if (here <= ReleaseThreshold(description.rules.sigma, sums.answers(place)) || end_page - first_page > 1)
        continue;
      Results::Histogram histogram{.group = group, .contributors = here, .bins = {}};
      for (size_t bin = 0; bin < kBins; ++bin)
        histogram.bins.push_back(sums.slots(place)[row * kRowSlots + bin] / kReportWeight);
      share.histograms.push_back(std::move(histogram));
    }
  }
  const double noise = NoiseDeviation(description.rules.sigma, answers) / kReportWeight;
  const double drawn = std::max(contributors, 0.0) * (1 - part);  // variance of a binomial draw, about
  share.devices = contributors / part;
  share.deviation = std::sqrt(noise * noise + drawn) / part;
  share.is_shown = contributors > ReleaseThreshold(description.rules.sigma, answers);
  return share;
}

std::string PercentOf(const Results::Share& share, const Results& results) {
  return results.reports == 0 ? ""
                              : fmt::format("{:.1f} %", 100 * std::max(share.devices, 0.0) /
                                                            static_cast<double>(results.reports));
}

std::string TimeOf(uint32_t epoch, uint32_t period_s) {
  return FormatUtcSecond(int64_t{epoch} * period_s * kNanosPerSecond);
}

void WriteTable(std::back_insert_iterator<std::string> out, const Results& results) {
  std::vector<TextColumn> columns = {{.title = "application", .min_width = 20, .max_width = 60},
                                     {.title = "devices", .right = true},
                                     {.title = "±", .right = true},
                                     {.title = "of all", .right = true}};
  const auto add = [&](const Results::Share& share) {
    const auto epochs = static_cast<double>(results.epochs);
    columns[0].cells.push_back(share.name);
    columns[1].cells.push_back(fmt::format("{:.0f}", std::max(share.devices, 0.0) / epochs));
    columns[2].cells.push_back(fmt::format("{:.0f}", 2 * share.deviation / epochs));
    columns[3].cells.push_back(PercentOf(share, results));
  };
  for (const Results::Share& share : results.applications)
    if (share.is_shown) add(share);
  if (results.unknown.is_shown) add(results.unknown);
  if (results.idle.is_shown) add(results.idle);
  if (columns[0].cells.empty()) {
    fmt::format_to(out, "no application is beyond the noise yet: sum more epochs, or more devices\n");
    return;
  }
  for (const std::string& line : LayOutTable(std::move(columns), kWidth)) fmt::format_to(out, "{}\n", line);
  fmt::format_to(out,
                 "\ndevices: on average in an epoch, estimated; ±: two standard deviations of the noise and\n"
                 "of the draw. Applications that noise could make are left out.\n");
}

void WriteNow(std::back_insert_iterator<std::string> out, const Results& results) {
  for (const Board::EpochState& epoch : results.now.epochs) {
    if (epoch.commitments == 0 && !epoch.is_closed) continue;  // it has not begun
    fmt::format_to(out, "epoch {}: {}", epoch.epoch, Counted(static_cast<int64_t>(epoch.reports), "report"));
    if (epoch.is_closed)
      fmt::format_to(out, ", {} of {} answers for {}\n", epoch.answers, epoch.lists * (results.decryptors),
                     Counted(static_cast<int64_t>(epoch.lists), "list"));
    else
      fmt::format_to(out, ", beacon {}\n", epoch.parts == results.decryptors ? "drawn" : "not drawn yet");
  }
}

void WriteShare(JsonWriter& writer, const Results::Share& share) {
  writer.BeginObject().Field("name", share.name).Field("devices", share.devices);
  writer.Field("deviation", share.deviation).Field("shown", share.is_shown).Key("histograms").BeginArray();
  for (const Results::Histogram& histogram : share.histograms) {
    writer.BeginObject().Field("group", Characteristics()[histogram.group].name);
    writer.Field("contributors", histogram.contributors).Key("bins").BeginArray();
    for (const double bin : histogram.bins) writer.Value(bin);
    writer.EndArray().EndObject();
  }
  writer.EndArray().EndObject();
}

}  // namespace

Result<Results> SumUp(const Board& board, size_t epochs) {
  const Description& description = board.description();
  const Layout layout = description.layout();
  Results results{.fleet = description.name, .period_s = description.period_s};
  results.min_reports = description.rules.min_reports;
  results.decryptors = description.decryptors.size();
  ASSIGN_OR_RETURN(results.now, board.Describe());
  const std::vector<uint32_t>& all = results.now.releases;
  Histograms sums(layout);
  for (size_t i = all.size() - std::min(all.size(), epochs); i < all.size(); ++i) {
    ASSIGN_OR_RETURN(const Release release, ReadRelease(board.releases_folder(), all[i]));
    if (!results.first_epoch.has_value()) results.first_epoch = release.epoch;
    results.last_epoch = release.epoch;
    ++results.epochs;
    results.devices = release.devices;
    results.expelled = release.expelled;
    results.reports += release.verdicts[0];
    for (size_t verdict = 1; verdict < kVerdicts; ++verdict) results.rejected += release.verdicts[verdict];
    results.lists_too_small += release.lists_too_small;
    for (const Release::List& list : release.lists) {
      ++results.lists[static_cast<size_t>(list.outcome)];
      if (list.outcome == Outcome::kReleased && list.place < layout.places())
        sums.Add(list.place, {.reports = list.reports, .answers = list.answers, .slots = list.slots});
    }
  }
  for (uint32_t i = 0; i < description.catalog.applications.size(); ++i) {
    const uint32_t page = i / kApplicationsPerPage;
    results.applications.push_back(ShareOf(description.catalog.applications[i].name, i % kApplicationsPerPage,
                                           page, page + 1, description, sums));
  }
  std::ranges::stable_sort(results.applications, std::ranges::greater(), &Results::Share::devices);
  results.idle = ShareOf("(idle)", kIdleRow, 0, layout.pages, description, sums);
  results.unknown = ShareOf("(not in the catalog)", kUnknownRow, 0, layout.pages, description, sums);
  const uint32_t signatures = layout.signatures_place();
  std::vector<double> slots(sums.slots(signatures).begin(), sums.slots(signatures).end());
  for (double& slot : slots) slot /= kReportWeight;
  results.spreading =
      FindSpreading(slots, ReleaseThreshold(description.rules.sigma, sums.answers(signatures))).size();
  return results;
}

std::string ToText(const Results& results) {
  std::string text;
  auto out = std::back_inserter(text);
  fmt::format_to(out, "fleet {}\n", results.fleet);
  if (!results.first_epoch.has_value()) {
    fmt::format_to(
        out,
        "nothing is released yet: the first devices' reports are released two to three epochs, of {} s,\n"
        "after they have enrolled\n",
        results.period_s);
  } else {
    fmt::format_to(out, "{} epoch{} from {} to {}\n", results.epochs, results.epochs == 1 ? "" : "s",
                   TimeOf(*results.first_epoch, results.period_s),
                   TimeOf(*results.last_epoch + 1, results.period_s));
    fmt::format_to(out, "{} accepted, {} rejected; {} expelled\n",
                   Counted(static_cast<int64_t>(results.reports), "report"), results.rejected,
                   Counted(static_cast<int64_t>(results.expelled), "device"));
    fmt::format_to(out, "sums: {} released, {} with fewer than {} reports, {} unanswered, {} implausible\n\n",
                   results.lists[0], results.lists_too_small, results.min_reports, results.lists[2],
                   results.lists[1]);
    WriteTable(out, results);
    if (results.spreading > 0)
      fmt::format_to(out, "{} that the catalog doesn't have {} run by many devices\n",
                     Counted(static_cast<int64_t>(results.spreading), "application"),
                     results.spreading == 1 ? "is" : "are");
  }
  fmt::format_to(out, "\nnow: {} enrolled\n", Counted(static_cast<int64_t>(results.now.devices), "device"));
  WriteNow(out, results);
  return text;
}

std::string ToJson(const Results& results) {
  JsonWriter writer;
  writer.BeginObject().Field("version", kResultsVersion).Field("fleet", results.fleet);
  writer.Field("period_s", int64_t{results.period_s});
  const auto epoch = [](std::optional<uint32_t> number) {
    return number.has_value() ? std::optional<int64_t>(*number) : std::nullopt;
  };
  writer.Field("first_epoch", epoch(results.first_epoch)).Field("last_epoch", epoch(results.last_epoch));
  writer.Field("epochs", static_cast<int64_t>(results.epochs));
  writer.Field("devices", static_cast<int64_t>(results.devices));
  writer.Field("expelled", static_cast<int64_t>(results.expelled));
  writer.Field("reports", static_cast<int64_t>(results.reports));
  writer.Field("rejected", static_cast<int64_t>(results.rejected)).Key("lists").BeginObject();
  for (size_t i = 0; i < kOutcomes; ++i)
    writer.Field(Name(static_cast<Outcome>(i)), static_cast<int64_t>(results.lists[i]));
  writer.Field("too_small", static_cast<int64_t>(results.lists_too_small)).EndObject();
  writer.Field("spreading", static_cast<int64_t>(results.spreading)).Key("idle");
  WriteShare(writer, results.idle);
  writer.Key("unknown");
  WriteShare(writer, results.unknown);
  writer.Key("applications").BeginArray();
  for (const Results::Share& share : results.applications) WriteShare(writer, share);
  return writer.EndArray().EndObject().Take();
}

}  // namespace gpusonde::fleet
