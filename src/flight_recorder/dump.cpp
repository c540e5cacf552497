// SPDX-License-Identifier: Apache-2.0
#include "flight_recorder/dump.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <string_view>
#include <utility>

#include "base/fd.h"
#include "base/regular_file.h"
#include "base/text.h"
#include "base/utf8.h"
#include "flight_recorder/value.h"

namespace gpusonde::flight_recorder {
namespace {

constexpr size_t kMaxFile = size_t{256} << 20;
constexpr char kPickle = '\x80';  // the opcode that a pickle of protocol 2 or newer begins with
constexpr size_t kHead = 4096;    // bytes by which a file is recognised
constexpr size_t kMaxFrames = 256;

std::string HeadOf(const std::string& path) {
  const Result<Fd> file = OpenRegular(path);
  return file.has_value() ? ReadRegular(*file, kHead).value_or("") : "";
}

// The digits at the end of the file's name, before a suffix: nccl_trace_rank_12, rank3.json.
std::optional<int64_t> RankIn(const std::string& path) {
  const std::filesystem::path file(path);
  const std::string name = file.stem().string();
  const size_t digits = name.find_last_not_of("0123456789") + 1;
  return ParseNumber<int64_t>(std::string_view(name).substr(digits));
}

std::optional<int64_t> IntegerOf(const Value& value, std::string_view key) {
  const Value* found = value.Find(key);
  return found == nullptr ? std::nullopt : found->Integer();
}

std::string_view ViewOf(const Value& value, std::string_view key) {
  const Value* found = value.Find(key);
  return found == nullptr || found->Text() == nullptr ? std::string_view() : *found->Text();
}

SharedText Cut(const SharedText& text) { return text.Part(Utf8Prefix(text, kMaxText)); }

SharedText TextOf(const Value& value, std::string_view key) {
  const Value* found = value.Find(key);
  return found == nullptr ? SharedText() : Cut(found->AsText());
}

// Ranks are written as text: "[0, 1, 2]".
std::vector<int64_t> RanksIn(std::string_view text) {
  std::vector<int64_t> ranks;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at != end) {
    int64_t rank = 0;
    const auto [next, failed] = std::from_chars(at, end, rank);
    if (failed == std::errc{}) ranks.push_back(rank);
    at = failed == std::errc{} ? next : at + 1;
  }
  std::ranges::sort(ranks);
  ranks.erase(std::ranges::unique(ranks).begin(), ranks.end());
  return ranks;
}

std::optional<State> StateIn(std::string_view text) {
  if (text == "scheduled") return State::kScheduled;
  if (text == "started") return State::kStarted;
  if (text == "completed") return State::kCompleted;
  return std::nullopt;
}

// "nccl:all_reduce" → "all_reduce".
SharedText OperationIn(const SharedText& name) {
  const size_t colon = name.view().find(':');
  return colon == std::string_view::npos ? name : name.Part(name.view().substr(colon + 1));
}

// Reads entries and groups out of the values of a dump. Beyond kMaxValues, what it returns is not complete.
class DumpReader {
 public:
  bool is_complete() const { return values_ <= kMaxValues; }

  std::vector<Frame> Frames(const Value* value) {
    std::vector<Frame> frames;
    for (const Value& frame : Items(value)) {
      if (frames.size() == kMaxFrames || !CountDict(frame)) break;
      frames.push_back(
          {TextOf(frame, "name"), TextOf(frame, "filename"), IntegerOf(frame, "line").value_or(0)});
    }
    return frames;
  }

  std::optional<Entry> ReadEntry(const Value& value) {
    if (!CountDict(value)) return std::nullopt;
    const std::vector<Value>& group = Items(value.Find("process_group"));
    const std::optional<State> state = StateIn(ViewOf(value, "state"));
    const std::optional<int64_t> record = IntegerOf(value, "record_id");
    const Value* point_to_point = value.Find("is_p2p");
    Entry entry;
    entry.operation = OperationIn(TextOf(value, "profiling_name"));
    entry.point_to_point = point_to_point != nullptr && point_to_point->Boolean().value_or(false);
    const std::optional<int64_t> sequence =
        IntegerOf(value, entry.point_to_point ? "p2p_seq_id" : "collective_seq_id");
    if (group.empty() || group.front().Text() == nullptr || !state || !record || !sequence ||
        entry.operation.empty())
      return std::nullopt;
    entry.record = *record;
    entry.group = Cut(group.front().AsText());
    entry.sequence = *sequence;
    entry.state = *state;
    entry.called_ns = IntegerOf(value, "time_created_ns");
    if (const Value* duration = value.Find("duration_ms")) entry.duration_ms = duration->Number();
    entry.timeout_ms = IntegerOf(value, "timeout_ms");
    for (const Value& sizes : Items(value.Find("input_sizes"))) {
      std::vector<int64_t>& one = entry.input_sizes.emplace_back();
      for (const Value& size : Items(&sizes)) one.push_back(size.Integer().value_or(0));
    }
    for (const Value& type : Items(value.Find("input_dtypes")))
      if (type.Text() != nullptr) entry.input_types.push_back(Cut(type.AsText()));
    return entry;
  }

  std::vector<Group> Groups(const Value* config) {
    std::vector<Group> groups;
    if (config == nullptr || !CountDict(*config) || config->AsDict() == nullptr) return groups;
    for (const auto& [name, group] : config->AsDict()->items) {
      const std::string_view ranks = ViewOf(group, "ranks");
      if (!CountDict(group) || !Count(ranks.size() / kBytesPerRank)) break;
      groups.push_back({Cut(name.AsText()), TextOf(group, "desc"), RanksIn(ranks)});
    }
    return groups;
  }

  // None if `value` isn't a list.
  const std::vector<Value>& Items(const Value* value) {
    static const std::vector<Value> kNone;
    const List* list = value == nullptr ? nullptr : value->AsList();
    return list == nullptr || !Count(list->items.size()) ? kNone : list->items;
  }

 private:
  static constexpr size_t kBytesPerRank = 8;  // "123456, "

  bool Count(size_t values) {
    values_ += values;
    return is_complete();
  }
  bool CountDict(const Value& value) {
    const Dict* dict = value.AsDict();
    return Count(dict == nullptr ? 1 : dict->items.size());
  }

  size_t values_ = 0;
};

// Whether the version is one that has `collective_seq_id`: 2.2 or newer.
bool IsReadable(std::string_view version) {
  int major = 0, minor = 0;
  const char* const end = version.data() + version.size();
  const auto [dot, failed] = std::from_chars(version.data(), end, major);
  if (failed != std::errc{}) return false;
  if (dot != end) std::from_chars(dot + 1, end, minor);
  return major > 2 || (major == 2 && minor >= 2);
}

}  // namespace

bool IsDump(const std::string& path) {
  const std::string head = HeadOf(path);
  if (head.size() > 1 && head[0] == kPickle) return head[1] >= 2 && head[1] <= 5;
  const auto has = [&head](std::string_view key) { return head.find(key) != std::string::npos; };
  return head.starts_with('{') && !has("\"traceEvents\"") && !has("\"schemaVersion\"") &&
         (has("\"collective_seq_id\"") || has("\"comm_lib_version\"") || has("\"nccl_version\""));
}

Result<Dump> ReadDump(const std::string& path) {
  const std::optional<int64_t> rank = RankIn(path);
  if (!rank.has_value())
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{}: the name of a Flight Recorder dump must end with the rank, as in "
                            "nccl_trace_rank_3",
                            path));
  ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path, kMaxFile));
  return ParseDump(bytes, path, *rank);
}

Result<Dump> ParseDump(std::string_view bytes, const std::string& path, int64_t rank) {
  Dump dump{.path = path, .rank = rank};
  Result<Value> root = bytes.starts_with(kPickle) ? ReadPickle(bytes) : ReadJson(bytes);
  if (!root.has_value()) return Fail(std::move(root).error().With(path));
  dump.version = ViewOf(*root, "version");
  if (!IsReadable(dump.version))
    return Fail(
        ErrorCode::kUnsupported,
        fmt::format("{}: version \"{}\" of the Flight Recorder's format is not read; 2.2 and newer are "
                    "(PyTorch 2.4)",
                    path, dump.version));
  DumpReader reader;
  dump.groups = reader.Groups(root->Find("pg_config"));
  std::vector<std::pair<Entry, const Value*>> read;
  for (const Value& value : reader.Items(root->Find("entries"))) {
    std::optional<Entry> entry = reader.ReadEntry(value);
    if (entry.has_value())
      read.emplace_back(*std::move(entry), &value);
    else
      ++dump.unreadable;
  }
  std::ranges::stable_sort(read, {}, [](const auto& one) { return one.first.record; });
  for (auto& [entry, value] : read) {
    if (entry.state != State::kCompleted || value == read.back().second)
      entry.frames = reader.Frames(value->Find("frames"));
    dump.entries.push_back(std::move(entry));
  }
  if (!reader.is_complete())
    return Fail(
        ErrorCode::kUnsupported,
        fmt::format("{}: more than {} values, each counted as often as it is referred to", path, kMaxValues));
  return dump;
}

}  // namespace gpusonde::flight_recorder
