// SPDX-License-Identifier: Apache-2.0
#include "importers/kineto/pair_joiner.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "importers/decimal.h"
#include "importers/kineto/names.h"

namespace gpusonde::importers::kineto {

namespace ondemand = simdjson::ondemand;

struct PairJoiner::Parser {
  ondemand::parser json;
  std::string padded;
};

// What joining needs of an event, as raw JSON.
struct PairJoiner::Members {
  std::string_view phase, pid, tid, time, arguments;
};

namespace {

// A token may be followed by blanks.
std::string_view WithoutBlanks(std::string_view token) {
  while (!token.empty() && IsBlank(token.back())) token.remove_suffix(1);
  return token;
}

}  // namespace

PairJoiner::PairJoiner() : parser_(std::make_unique<Parser>()) {}
PairJoiner::~PairJoiner() = default;

bool PairJoiner::MayHavePairs(std::string_view text) {
  // The letter is far rarer in JSON than the quotes around it: looking for "\"B\"" from its beginning took a
  // sixth of the analysis of 10 MB.
  for (size_t at = text.find('B'); at != std::string_view::npos; at = text.find('B', at + 1))
    if (at > 0 && text.substr(at - 1, 3) == "\"B\"") return true;
  return false;
}

bool PairJoiner::Read(std::string_view event, Members& members) {
  std::string& padded = parser_->padded;
  padded.reserve(event.size() + simdjson::SIMDJSON_PADDING);
  padded = event;
  ondemand::document document;
  ondemand::object object;
  if (parser_->json.iterate(padded.data(), padded.size(), padded.capacity()).get(document) !=
          simdjson::SUCCESS ||
      document.get_object().get(object) != simdjson::SUCCESS)
    return false;
  for (auto member : object) {
    ondemand::field field;
    if (std::move(member).get(field) != simdjson::SUCCESS) return false;
    const char* const key = field.key().raw();
    if (KeyIs(key, "ph"))
      members.phase = Unquote(field.value().raw_json_token());
    else if (KeyIs(key, "pid"))
      members.pid = WithoutBlanks(field.value().raw_json_token());
    else if (KeyIs(key, "tid"))
      members.tid = WithoutBlanks(field.value().raw_json_token());
    else if (KeyIs(key, "ts"))
      members.time = field.value().raw_json_token();
    else if (KeyIs(key, "args")) {
      ondemand::object arguments;
      if (field.value().get_object().get(arguments) == simdjson::SUCCESS &&
          arguments.raw_json().get(members.arguments) != simdjson::SUCCESS)
        return false;
    }
  }
  return true;
}

void PairJoiner::Append(std::string_view event) {
  if (joined_.size() > 1) joined_ += ',';
  joined_ += event;
  ends_.push_back(static_cast<uint32_t>(joined_.size()));
}

void PairJoiner::Add(std::string_view event) {
  Members members;
  if (!Read(event, members) || (members.phase != "B" && members.phase != "E")) return Append(event);
  const std::optional<int64_t> time_ns = ParseMicroseconds(members.time);
  if (!time_ns.has_value()) return Append(event);
  Thread thread(members.pid, members.tid);
  if (members.phase == "B") {
    if (open_bytes_ + event.size() > kMaxOpenBytes) return Append(event);
    open_bytes_ += event.size();
    open_[std::move(thread)].push_back({std::string(event), *time_ns, !members.arguments.empty()});
    return;
  }
  const auto found = open_.find(thread);
  if (found == open_.end()) return Append(event);
  const Begin begin = std::move(found->second.back());
  found->second.pop_back();
  if (found->second.empty()) open_.erase(found);
  open_bytes_ -= begin.text.size();
  // Of members that are there twice the last counts.
  std::string_view text = begin.text;
  text.remove_suffix(text.size() - text.rfind('}'));
  const int64_t duration_ns = *time_ns - begin.start_ns;
  std::string whole = fmt::format("{},\"ph\":\"X\",\"dur\":{}{}.{:03}", text, duration_ns < 0 ? "-" : "",
                                  std::abs(duration_ns) / 1'000, std::abs(duration_ns) % 1'000);
  if (!begin.has_arguments && !members.arguments.empty())
    whole += fmt::format(",\"args\":{}", members.arguments);
  Append(whole + "}");
}

void PairJoiner::Join(EventSplitter::Chunk& chunk) {
  joined_ = "[";
  ends_.clear();
  const std::string_view text = chunk.text;
  size_t at = 1;
  for (const uint32_t end : chunk.ends) {
    while (at < end && (IsBlank(text[at]) || text[at] == ',')) ++at;
    Add(text.substr(at, end - at));
    at = end;
  }
  // The parser also checks what follows the last event.
  joined_ += text.substr(std::min(at, text.size()));
  chunk.text.swap(joined_);
  chunk.text.reserve(chunk.text.size() + EventSplitter::kPadding);
  chunk.ends.swap(ends_);
}

bool PairJoiner::Finish(EventSplitter::Chunk& chunk) {
  if (open_.empty()) return false;
  joined_ = "[";
  ends_.clear();
  for (const auto& [thread, begins] : open_)
    for (const Begin& begin : begins) Append(begin.text);
  joined_ += ']';
  open_.clear();
  open_bytes_ = 0;
  chunk.text.swap(joined_);
  chunk.text.reserve(chunk.text.size() + EventSplitter::kPadding);
  chunk.ends.swap(ends_);
  return true;
}

}  // namespace gpusonde::importers::kineto
