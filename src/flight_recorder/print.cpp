// SPDX-License-Identifier: Apache-2.0
#include "flight_recorder/print.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "base/counted.h"
#include "base/json_writer.h"
#include "base/printable.h"
#include "base/time.h"

namespace gpusonde::flight_recorder {
namespace {

// "0-2, 5".
std::string RangesOf(const std::vector<int64_t>& ranks) {
  std::string text;
  for (size_t i = 0; i < ranks.size(); ++i) {
    const size_t first = i;
    while (i + 1 < ranks.size() && ranks[i + 1] == ranks[i] + 1) ++i;
    text += text.empty() ? "" : ", ";
    text += i == first ? fmt::format("{}", ranks[i]) : fmt::format("{}-{}", ranks[first], ranks[i]);
  }
  return text;
}

std::vector<int64_t> RanksOf(const std::vector<Part>& parts) {
  std::vector<int64_t> ranks;
  for (const Part& part : parts) ranks.push_back(part.rank);
  return ranks;
}

std::string RanksText(const std::vector<Part>& parts) {
  return fmt::format("{} {}", parts.size() == 1 ? "rank" : "ranks", RangesOf(RanksOf(parts)));
}

std::string GroupText(const Group& group) {
  if (group.description.empty()) return fmt::format("group {}", Printable(group.name));
  return fmt::format("group {} ({})", Printable(group.name), Printable(group.description));
}

std::string OperationText(const Pending& pending) {
  return fmt::format("{} #{} of {}", Printable(pending.operation), pending.sequence,
                     GroupText(pending.group));
}

// The innermost frame outside of PyTorch, from which the user's program made the call.
const Frame* CallerIn(const Entry& entry) {
  const auto is_torch = [](const Frame& frame) {
    const std::string_view file = frame.file;
    return file.contains("/torch/") || file.empty() || file.starts_with("<");
  };
  const auto found = std::ranges::find_if_not(entry.frames, is_torch);
  return found == entry.frames.end() ? nullptr : &*found;
}

std::string PlaceText(const Entry& entry) {
  const Frame* caller = CallerIn(entry);
  if (caller == nullptr) return "";
  return fmt::format(", from {}:{} ({})", Printable(caller->file), caller->line, Printable(caller->function));
}

std::string_view StateName(State state) {
  switch (state) {
    case State::kScheduled:
      return "scheduled";
    case State::kStarted:
      return "started";
    case State::kCompleted:
      return "completed";
  }
  return "";
}

std::string LastCallText(const Entry* last) {
  if (last == nullptr) return "";
  return fmt::format(" Its last call was {} #{} of group {} ({}){}{}.", Printable(last->operation),
                     last->sequence, Printable(last->group), StateName(last->state),
                     last->called_ns.has_value() ? fmt::format(" at {}", FormatUtc(*last->called_ns)) : "",
                     PlaceText(*last));
}

std::string SignatureText(const Entry& entry) {
  std::string sizes;
  for (const std::vector<int64_t>& one : entry.input_sizes)
    sizes += fmt::format("{}[{}]", sizes.empty() ? " " : ", ", fmt::join(one, ", "));
  return fmt::format("{}{}{}", Printable(entry.operation), sizes,
                     entry.input_types.empty() ? "" : " " + Printable(entry.input_types.front()));
}

std::string NoDumpText(const std::vector<int64_t>& ranks, const Pending& pending) {
  const bool one = ranks.size() == 1;
  return fmt::format(
      "{} {} left no dump, and {} for {} in {}: {} ended, or {} where {} can't write one. Look for {} exit, "
      "for "
      "an XID in the kernel's log, and for {}.",
      one ? "Rank" : "Ranks", RangesOf(ranks),
      pending.waiting.size() == 1 ? "1 rank waits"
                                  : Counted(static_cast<int64_t>(pending.waiting.size()), "rank") + " wait",
      one ? "it" : "them", OperationText(pending), one ? "it has" : "they have", one ? "hangs" : "hang",
      one ? "it" : "they", one ? "its" : "their", one ? "its file" : "their files");
}

std::string SuspectText(const Suspect& suspect, const Hang& hang) {
  const Pending& pending = hang.pending[suspect.pending];
  const std::string waiting = Counted(static_cast<int64_t>(pending.waiting.size()), "rank");
  const std::string operation = OperationText(pending);
  switch (suspect.why) {
    case Why::kNotCalled:
      return fmt::format(
          "Rank {} keeps {} waiting: it has not called {} and waits in no other operation. Its program is "
          "busy or "
          "stuck elsewhere.{} See what that process does now: `gpusonde record --pid PID` on its host.",
          suspect.rank, waiting, operation, LastCallText(suspect.last_call));
    case Why::kNoDump:
      return NoDumpText({suspect.rank}, pending);
    case Why::kDifferent: {
      const auto mine = std::ranges::find(pending.different, suspect.rank, &Part::rank);
      const auto other = std::ranges::find_if(pending.waiting, [&](const Part& part) {
        return std::ranges::find(pending.different, part.rank, &Part::rank) == pending.different.end();
      });
      return fmt::format(
          "Rank {} called {} as #{} of {}, where others called {}{}. All ranks must make the same "
          "calls in the same order.",
          suspect.rank, SignatureText(*mine->call) + PlaceText(*mine->call), pending.sequence,
          GroupText(pending.group),
          other == pending.waiting.end() ? Printable(pending.operation) : SignatureText(*other->call),
          other == pending.waiting.end() ? "" : PlaceText(*other->call));
    }
    case Why::kGpuBehind:
      return fmt::format(
          "Rank {} has called {}, but its GPU has not begun it while others have: earlier work on "
          "its GPU is slow or stuck.{}",
          suspect.rank, operation, LastCallText(suspect.last_call));
    case Why::kDeadlock:
      return fmt::format(
          "Rank {} has not called {}, as it waits in {} for ranks that wait for it: a deadlock. Ranks "
          "must call the operations of all groups in the same order.{}",
          suspect.rank, operation, OperationText(hang.pending[*suspect.waits_in]),
          LastCallText(suspect.last_call));
  }
  return "";
}

// A sentence for each suspect, but one for all ranks without a dump that are waited for in one operation:
// often only the dumps of a few ranks are at hand.
std::vector<std::string> SuspectSentences(const Hang& hang) {
  std::map<size_t, std::vector<int64_t>> without_dump;
  for (const Suspect& suspect : hang.suspects)
    if (suspect.why == Why::kNoDump) without_dump[suspect.pending].push_back(suspect.rank);
  std::vector<std::string> sentences;
  for (const Suspect& suspect : hang.suspects) {
    if (suspect.why != Why::kNoDump) {
      sentences.push_back(SuspectText(suspect, hang));
    } else if (const auto ranks = without_dump.extract(suspect.pending); !ranks.empty()) {
      sentences.push_back(NoDumpText(ranks.mapped(), hang.pending[suspect.pending]));
    }
  }
  return sentences;
}

bool AllAreIn(const Pending& pending) {
  return pending.missing.empty() && pending.no_dump.empty() && pending.different.empty();
}

std::string PendingText(const Pending& pending) {
  std::string text = fmt::format("{}: {} {} in it", OperationText(pending), RanksText(pending.waiting),
                                 pending.waiting.size() == 1 ? "waits" : "wait");
  if (!pending.completed.empty()) text += fmt::format("; {} completed it", RanksText(pending.completed));
  if (!pending.missing.empty()) text += fmt::format("; {} did not call it", RanksText(pending.missing));
  if (!pending.no_dump.empty()) text += fmt::format("; no dump of {}", RanksText(pending.no_dump));
  if (!pending.different.empty())
    text += fmt::format("; {} called something else", RanksText(pending.different));
  return text;
}

std::string StragglerText(const Straggler& one) {
  return fmt::format(
      "Rank {} came last in {} of {} collectives of {}; the others waited {:.1f} ms for it each time.",
      one.rank, one.last, one.collectives, GroupText({one.group, one.description, {}}), one.waited_ms);
}

std::string SummaryText(std::span<const Dump> dumps) {
  std::vector<int64_t> ranks;
  std::set<std::string> versions;
  int64_t unreadable = 0, entries = 0;
  for (const Dump& dump : dumps) {
    ranks.push_back(dump.rank);
    versions.insert(dump.version);
    unreadable += dump.unreadable;
    entries += static_cast<int64_t>(dump.entries.size());
  }
  std::ranges::sort(ranks);
  return fmt::format("{} of PyTorch's Flight Recorder, rank{} {}, with {}{}\n",
                     Counted(static_cast<int64_t>(dumps.size()), "dump"), ranks.size() == 1 ? "" : "s",
                     RangesOf(ranks), Counted(entries, "operation"),
                     unreadable == 0 ? "" : fmt::format(" ({} more could not be read)", unreadable));
}

void WriteRanks(JsonWriter& json, std::string_view key, const std::vector<Part>& parts) {
  json.Key(key).BeginArray();
  for (const Part& part : parts) json.Value(part.rank);
  json.EndArray();
}

void WriteCall(JsonWriter& json, std::string_view key, const Entry* call) {
  if (call == nullptr) return;
  json.Key(key).BeginObject().Field("operation", call->operation).Field("group", call->group);
  json.Field("sequence", call->sequence)
      .Field("state", StateName(call->state))
      .Field("called_ns", call->called_ns);
  json.Key("frames").BeginArray();
  for (const Frame& frame : call->frames)
    json.BeginObject()
        .Field("function", frame.function)
        .Field("file", frame.file)
        .Field("line", frame.line)
        .EndObject();
  json.EndArray().EndObject();
}

}  // namespace

std::string FormatText(std::span<const Dump> dumps, const Hang& hang) {
  std::string text = SummaryText(dumps);
  for (const std::string& sentence : SuspectSentences(hang)) text += "\n" + sentence + "\n";
  for (const Pending& pending : hang.pending)
    if (hang.suspects.empty() && AllAreIn(pending) && !pending.ranks_known)
      text += fmt::format(
          "\nAll ranks whose dumps are given and that use {} have called {}, and it has not ended. The dumps "
          "don't say which ranks it has: give those of all ranks, to see whether one is late.\n",
          GroupText(pending.group), fmt::format("{} #{}", Printable(pending.operation), pending.sequence));
    else if (hang.suspects.empty() && AllAreIn(pending))
      text += fmt::format(
          "\nAll ranks have called {}, and it has not ended: no rank is late. The network between them, "
          "a GPU or NCCL itself is stuck; NCCL_DEBUG=INFO and the kernel's log (XID) say more.\n",
          OperationText(pending));
  if (hang.pending.empty())
    text += "\nNothing is pending: every operation that the dumps hold has completed.\n";
  for (const Straggler& one : hang.stragglers) text += "\n" + StragglerText(one) + "\n";
  if (hang.pending.empty() && hang.timed == 0)
    text += "Which rank comes late can't be said without durations: set TORCH_NCCL_ENABLE_TIMING=1.\n";
  if (!hang.pending.empty()) text += "\nPending:\n";
  for (const Pending& pending : hang.pending) text += "  " + PendingText(pending) + "\n";
  return text;
}

std::string FormatJson(std::span<const Dump> dumps, const Hang& hang) {
  JsonWriter json;
  json.BeginObject().Field("version", 1).Key("dumps").BeginArray();
  for (const Dump& dump : dumps)
    json.BeginObject()
        .Field("path", dump.path)
        .Field("rank", dump.rank)
        .Field("format", dump.version)
        .Field("operations", static_cast<int64_t>(dump.entries.size()))
        .Field("unreadable", dump.unreadable)
        .EndObject();
  json.EndArray().Key("suspects").BeginArray();
  for (const Suspect& suspect : hang.suspects) {
    json.BeginObject().Field("rank", suspect.rank).Field("why", Name(suspect.why));
    json.Field("pending", static_cast<int64_t>(suspect.pending))
        .Field("sentence", SuspectText(suspect, hang));
    WriteCall(json, "last_call", suspect.last_call);
    json.EndObject();
  }
  json.EndArray().Key("pending").BeginArray();
  for (const Pending& pending : hang.pending) {
    json.BeginObject().Field("group", pending.group.name).Field("description", pending.group.description);
    json.Field("operation", pending.operation).Field("sequence", pending.sequence);
    json.Field("point_to_point", pending.point_to_point).Field("ranks_known", pending.ranks_known);
    WriteRanks(json, "waiting", pending.waiting);
    WriteRanks(json, "completed", pending.completed);
    WriteRanks(json, "missing", pending.missing);
    WriteRanks(json, "no_dump", pending.no_dump);
    WriteRanks(json, "different", pending.different);
    json.EndObject();
  }
  json.EndArray().Key("stragglers").BeginArray();
  for (const Straggler& one : hang.stragglers)
    json.BeginObject()
        .Field("rank", one.rank)
        .Field("group", one.group)
        .Field("description", one.description)
        .Field("collectives", one.collectives)
        .Field("last", one.last)
        .Field("waited_ms", one.waited_ms)
        .EndObject();
  json.EndArray().Field("timed_collectives", hang.timed).EndObject();
  return json.Take() + "\n";
}

}  // namespace gpusonde::flight_recorder
