// SPDX-License-Identifier: Apache-2.0
#include "diagnose/collective_incidents.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "base/printable.h"
#include "base/time.h"
#include "diagnose/cause.h"
#include "diagnose/causes/words.h"
#include "diagnose/collective_hang.h"

namespace gpusonde::diagnose {
namespace {

constexpr size_t kMaxReports = 256;
// A straggler that isn't found for this long has recovered: one second without is chance.
constexpr int64_t kCalmNs = 3 * kNanosPerSecond;
// Ranks that a sentence names.
constexpr size_t kMaxNamedRanks = 4;
// Chosen, not fitted: the ranks' calls leave no doubt about which rank hangs; a straggler is judged by times.
constexpr double kHangConfidence = 0.99, kStragglerConfidence = 0.9;

std::string NameGroup(const std::string& name, const std::string& communicator, int32_t ranks) {
  const std::string which =
      name.empty() ? communicator : fmt::format("{} ({})", Printable(name), communicator);
  return fmt::format("communicator {} of {} ranks", which, ranks);
}

std::string NameRanks(const std::vector<CollectiveRank>& ranks, const Actors& actors) {
  std::string text;
  for (size_t i = 0; i < std::min(ranks.size(), kMaxNamedRanks); ++i)
    text += fmt::format("{}{}", i == 0 ? "" : ", ", NameRank(ranks[i], actors));
  if (ranks.size() > kMaxNamedRanks) text += fmt::format(" and {} more", ranks.size() - kMaxNamedRanks);
  return text;
}

std::string LastCall(const CollectiveRank& rank) {
  return rank.last_call.has_value() ? fmt::format(" The last call known of it is {} at {}.",
                                                  Printable(*rank.last_call), FormatUtc(rank.last_called_ns))
                                    : " No call of it is known.";
}

// "1 rank waits", "6 ranks wait".
std::string Waiting(size_t ranks) {
  return ranks == 1 ? "1 rank waits" : fmt::format("{} ranks wait", ranks);
}

std::string HangText(const CollectiveHang& hang, const Actors& actors) {
  const std::string what = fmt::format("{} #{} of {}", Printable(hang.operation), hang.sequence,
                                       NameGroup(hang.name, hang.communicator, hang.ranks));
  const std::string since = FormatUtc(hang.since_ns);
  if (!hang.missing.empty())
    return fmt::format("{} in {} since {} for {}, which {} not called it.{}", Waiting(hang.waiting.size()),
                       what, since, NameRanks(hang.missing, actors),
                       hang.missing.size() == 1 ? "has" : "have", LastCall(hang.missing.front()));
  if (!hang.gpu_behind.empty())
    return fmt::format(
        "{} in {} since {} for {}: called, but not begun by the GPU, whose earlier work is slow or stuck.",
        Waiting(hang.waiting.size()), what, since, NameRanks(hang.gpu_behind, actors));
  if (hang.elsewhere > 0)
    return fmt::format(
        "{} in {} since {}; those on this machine have called it, so one of the {} others has not, or "
        "the network is stuck.",
        Waiting(hang.waiting.size()), what, since, hang.elsewhere);
  return fmt::format(
      "All ranks wait in {} since {}, so none is late: the network, a GPU or NCCL is stuck; look for XIDs "
      "in the kernel's log.",
      what, since);
}

std::string StragglerText(const CollectiveStraggler& late, const Actors& actors) {
  return fmt::format(
      "{} came last in {} of {} collectives of {}, most of the time in {}; the others waited {} for it "
      "each time, {:.0f} % of the time ({:.0f} % before).",
      NameRank(late.rank, actors), late.last, late.collectives,
      NameGroup(late.name, late.communicator, late.ranks), Printable(late.operation), Time(late.waited_ns),
      100 * late.share, 100 * late.share_before);
}

// Sentences begin with a capital.
std::string Capitalised(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 'a' + 'A');
  return text;
}

}  // namespace

// What was found in this second.
struct CollectiveIncidents::Found {
  std::string key;  // of the kind and communicator
  CauseId cause;
  double confidence = 0, slowdown = 1;
  std::string text;
  CollectiveRank blamed;    // of a hang without a suspect, one that waits
  bool has_suspect = true;  // `blamed` is why
  int64_t start_ns = 0;
  int64_t from_ns = 0;  // since when the suspect's host is looked at
};

Report* CollectiveIncidents::Find(const Id128& incident) {
  const auto found =
      std::ranges::find(reports_, incident, [](const Report& one) { return one.incident.incident; });
  return found == reports_.end() ? nullptr : &*found;
}

void CollectiveIncidents::Advance(int64_t now_ns, const RankContext& context, const Emit& emit) {
  if (now_ns - evaluated_ns_ < kNanosPerSecond) return;
  evaluated_ns_ = now_ns;
  groups_.Forget(now_ns, [&](const Id128& process) {
    const model::Process* row = context.actors.Find(process);
    return row != nullptr && row->exited_ns.value_or(INT64_MAX) <= now_ns;
  });
  for (const CollectiveHang& hang : FindHangs(groups_, now_ns, kHungNs)) {
    const std::vector<CollectiveRank>& suspects = !hang.missing.empty()      ? hang.missing
                                                  : !hang.gpu_behind.empty() ? hang.gpu_behind
                                                                             : hang.waiting;
    Update({.key = "hang " + hang.communicator,
            .cause = CauseId::kHang,
            .confidence = kHangConfidence,
            .text = HangText(hang, context.actors),
            .blamed = suspects.front(),
            .has_suspect = !hang.missing.empty(),
            .start_ns = hang.since_ns,
            .from_ns = hang.since_ns},
           now_ns, context, emit);
  }
  for (const CollectiveStraggler& late : stragglers_.Find(groups_, now_ns))
    Update({.key = "straggler " + late.communicator,
            .cause = CauseId::kStraggler,
            .confidence = kStragglerConfidence,
            .slowdown = 1 / std::max(0.01, 1 - (late.share - late.share_before)),
            .text = StragglerText(late, context.actors),
            .blamed = late.rank,
            .has_suspect = true,
            .start_ns = late.from_ns,
            .from_ns = late.from_ns},
           now_ns, context, emit);
  std::erase_if(open_, [&](const auto& entry) {
    const int64_t calm_ns = entry.first.starts_with("hang") ? 0 : kCalmNs;
    if (now_ns - entry.second.found_ns <= calm_ns) return false;
    End(entry.second.incident, entry.second.found_ns, emit);
    return true;
  });
}

void CollectiveIncidents::Abandon(int64_t now_ns, const Emit& emit) {
  for (const auto& [key, open] : open_) End(open.incident, now_ns, emit);
  open_.clear();
}

void CollectiveIncidents::End(const Id128& incident, int64_t end_ns, const Emit& emit) {
  Report* report = Find(incident);
  if (report == nullptr) return;
  report->incident.end_ns = std::max(end_ns, report->incident.start_ns);
  emit(*report);
}

// An incident keeps its rank and its sentence while it lasts, except that its cause on the host may become
// known: an output that changes each second is no help.
void CollectiveIncidents::Update(const Found& found, int64_t now_ns, const RankContext& context,
                                 const Emit& emit) {
  auto [open, is_new] = open_.try_emplace(found.key);
  open->second.found_ns = now_ns;
  const int64_t until_ns = found.cause == CauseId::kHang ? now_ns : found.from_ns + 3 * kNanosPerSecond;
  const RankHost host =
      found.has_suspect ? ExplainRank(found.blamed, found.from_ns, until_ns, context) : RankHost{};
  Report* report = is_new ? nullptr : Find(open->second.incident);
  if (report != nullptr && report->incident.process != found.blamed.process) {
    End(open->second.incident, now_ns, emit);  // another rank now
    report = nullptr;
  }
  if (report == nullptr) {
    Report begun;
    begun.incident = {.process = found.blamed.process, .start_ns = found.start_ns, .seen_ns = now_ns};
    begun.incident.incident = IdHasher("collective incident")
                                  .Add(found.key)
                                  .Add(found.blamed.process)
                                  .Add(static_cast<uint64_t>(found.start_ns))
                                  .Finish();
    open->second.incident = begun.incident.incident;
    begun.incident.named_ns = now_ns;
    begun.incident.cause = NameOf(found.cause);
    begun.incident.confidence = found.confidence;
    begun.anchor = "collectives";
    if (reports_.size() >= kMaxReports) reports_.erase(reports_.begin());
    reports_.push_back(std::move(begun));
    report = &reports_.back();
  } else if (!report->evidence.empty() || host.sentence.empty()) {
    return;
  }
  const model::Process* process = context.actors.Find(found.blamed.process);
  report->process_name = process == nullptr ? "" : process->name;
  report->pid = process == nullptr ? 0 : process->pid;
  report->incident.slowdown = found.slowdown;
  const Cause* cause = AllCauses()[static_cast<size_t>(found.cause)];
  report->incident.sentence =
      fmt::format("{}: {}{}{}", cause->title, found.text, host.sentence.empty() ? "" : " ", host.sentence);
  report->causes = {{.cause = cause,
                     .finding = {.sentence = Capitalised(found.text), .root = host.cause},
                     .share = 1,
                     .confidence = found.confidence}};
  report->evidence.clear();
  if (!host.sentence.empty())
    report->evidence.push_back(
        {.incident = report->incident.incident,
         .signal = host.cause.has_value() ? fmt::format("root.{}", NameOf(*host.cause)) : "root.unknown",
         .sentence = host.sentence});
  emit(*report);
}

}  // namespace gpusonde::diagnose
