// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>

#include "fleet/simulator/simulator.h"

namespace gpusonde::fleet {
namespace {

std::string ShareOf(uint64_t part, uint64_t all) {
  if (all == 0) return "none of 0";
  return fmt::format("{:.2f} % of {}", 100.0 * static_cast<double>(part) / static_cast<double>(all), all);
}

// Reports are distributed over cohorts at random: with this margin on average, hardly any cohort is too
// small.
constexpr double kSpread = 1.1;

// Why there is nothing to see, and what would change it.
void ExplainNothingReleased(std::back_insert_iterator<std::string> out, const Parameters& p, const Run& run,
                            uint64_t reports, uint64_t cohorts) {
  const uint64_t cohorts_an_hour = std::max<uint64_t>(cohorts / run.hours.size(), 1);
  fmt::format_to(
      out,
      "  nothing released: a cohort is released from {} reports on (--min-reports), and the {} cohorts of an "
      "hour\n"
      "                   had {:.0f} each; give about {:.0f} --devices, or fewer --groups and --cohorts\n",
      p.min_reports, cohorts_an_hour, static_cast<double>(reports) / static_cast<double>(cohorts),
      kSpread * static_cast<double>(p.min_reports) * static_cast<double>(cohorts_an_hour));
}

// Why decryptors refuse, and what would change it.
void ExplainBudget(std::back_insert_iterator<std::string> out, const Parameters& p, const Budgets& budgets) {
  if (budgets.windows == 0 && budgets.epsilon_window > p.epsilon)
    fmt::format_to(
        out,
        "  nothing released: a window costs an epsilon of {:.2f}, more than a device's budget of {:g}; "
        "give a larger --epsilon\n",
        budgets.epsilon_window, p.epsilon);
  else
    fmt::format_to(
        out,
        "  unanswered       where a device's budget of {:g} is spent: give a larger --epsilon, or fewer "
        "--hours\n",
        p.epsilon);
}

void WriteRun(std::back_insert_iterator<std::string> out, const Parameters& parameters, const Run& run) {
  const bool masked = run.kind == ReportKind::kMasked;
  fmt::format_to(out, "\n{}\n",
                 masked ? "Masked reports, with noise"
                        : "BFV reports (Penrose's way): honest devices only, without noise");
  if (run.hours.empty()) return;
  uint64_t accepted = 0;
  uint64_t rejected = 0;
  uint64_t refused = 0;
  uint64_t unanswered = 0;
  uint64_t small = 0;
  uint64_t lists = 0;
  uint64_t expelled = 0;
  uint64_t expelled_honest = 0;
  for (const Hour& hour : run.hours) {
    accepted += hour.verdicts[0];
    for (size_t i = 1; i < kVerdicts; ++i) rejected += hour.verdicts[i];
    lists += hour.lists;
    refused += hour.lists_refused;
    unanswered += hour.lists_unanswered;
    small += hour.lists_too_small;
    expelled += hour.expelled;
    expelled_honest += hour.expelled_honest;
  }
  const Hour& last = run.hours.back();
  const Measured& measured = run.measured;
  fmt::format_to(out, "  coverage         {:.2f} % sampled, {:.2f} % released after {} h\n",
                 100 * last.sampled_coverage, 100 * last.released_coverage, run.hours.size());
  fmt::format_to(out, "  reports          {} accepted, {} rejected, {} bytes each\n", accepted, rejected,
                 run.report_bytes);
  fmt::format_to(out,
                 "  cohorts          {} of {} released; {} too small, {} unanswered, {} spoilt; {} devices "
                 "expelled, {} of "
                 "them honest\n",
                 lists - small - unanswered - refused, lists, small, unanswered, refused, expelled,
                 expelled_honest);
  if (small > 0 && small == lists) ExplainNothingReleased(out, parameters, run, accepted, lists);
  if (masked && unanswered > 0 && run.budgets.windows_left == 0) ExplainBudget(out, parameters, run.budgets);
  fmt::format_to(out, "  identified       {} known, {} unknown called so; {} of {} private queries agreed\n",
                 ShareOf(run.identification.known_right, run.identification.known),
                 ShareOf(run.identification.unknown_right, run.identification.unknown),
                 run.identification.private_agreed, run.identification.private_queries);
  if (run.error.slots > 0) {
    fmt::format_to(out, "  error of sums    {} before noise", run.error.largest_before_noise);
    if (masked)
      fmt::format_to(out, "; noise at most {:.1f} sd, {:.1f} % within 2 sd", run.error.largest_deviations,
                     100 * run.error.within_two_deviations);
    fmt::format_to(out, "\n");
  }
  if (masked)
    fmt::format_to(out, "  privacy          epsilon {:.2f} a window, {:.2f} spent, {} windows left\n",
                   run.budgets.epsilon_window, run.budgets.epsilon_spent, run.budgets.windows_left);
  if (run.identification.private_queries > 0) {
    fmt::format_to(
        out,
        "  device           {:.5f} % of its node's cores ({:.5f} % in the open): report {:.0f} us, query "
        "{:.0f} us, look {:.0f} us\n",
        100 * measured.device_share, 100 * measured.device_share_public, measured.report_us,
        measured.query_us, measured.look_us);
    fmt::format_to(
        out,
        "  aggregator       {:.0f} us a report, {:.0f} us a query; 90 % of reports within {:.2f} ms, of "
        "queries {:.2f} ms\n",
        measured.accept_us, measured.query_server_us, measured.report_latency.p90_ms,
        measured.query_latency.p90_ms);
  } else {
    fmt::format_to(
        out,
        "  device           {:.5f} % of its node's cores in the open: report {:.0f} us, look {:.0f} us\n",
        100 * measured.device_share_public, measured.report_us, measured.look_us);
    fmt::format_to(out, "  aggregator       {:.0f} us a report; 90 % of reports within {:.2f} ms\n",
                   measured.accept_us, measured.report_latency.p90_ms);
  }
  fmt::format_to(out, "  on this machine  {:.1f} s an hour for all reports and releases; {:.1f} s in all\n",
                 measured.pipeline_s, measured.wall_s);
}

}  // namespace

std::string ToText(const Simulated& simulated) {
  const Parameters& p = simulated.parameters;
  std::string text = fmt::format(
      "{} simulated devices, {} h, {} applications (Zipf {}) from {} real kernel streams, load {:g} %\n",
      p.devices, p.hours, p.applications, p.zipf, simulated.streams.size(), 100 * p.load);
  if (simulated.stopped) text += "Stopped before its end.\n";
  for (const Run& run : simulated.runs) WriteRun(std::back_inserter(text), p, run);
  return text;
}

}  // namespace gpusonde::fleet
