// SPDX-License-Identifier: Apache-2.0
#include "exporters/prometheus/relabelling.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <regex>
#include <utility>

#include "base/ascii.h"

namespace gpusonde::exporters::prometheus {
namespace {

using Json = nlohmann::json;

constexpr size_t kMaxRules = 100;
// Of a value that is matched: a longer one matches nothing.
constexpr size_t kMaxMatchedBytes = 4096;
constexpr std::string_view kNameLabel = "__name__";

enum class Action { kReplace, kKeep, kDrop, kLabelMap, kLabelDrop, kLabelKeep };
constexpr std::pair<std::string_view, Action> kActions[] = {
    {"replace", Action::kReplace},   {"keep", Action::kKeep},           {"drop", Action::kDrop},
    {"labelmap", Action::kLabelMap}, {"labeldrop", Action::kLabelDrop}, {"labelkeep", Action::kLabelKeep}};

bool IsLabelName(std::string_view text) {
  return !text.empty() && !IsDigit(text.front()) &&
         std::ranges::all_of(text, [](char c) { return c == '_' || IsLetterOrDigit(c); });
}

// The texts of a JSON array; null if it is none, or has other values.
std::optional<std::vector<std::string>> TextsOf(const Json& value) {
  if (!value.is_array()) return std::nullopt;
  std::vector<std::string> texts;
  for (const Json& each : value) {
    if (!each.is_string()) return std::nullopt;
    texts.push_back(each.get<std::string>());
  }
  return texts;
}

bool Matches(const std::regex& regex, std::string_view value, std::cmatch& match) {
  return value.size() <= kMaxMatchedBytes &&
         std::regex_match(value.data(), value.data() + value.size(), match, regex);
}

// Replaces $1, ${1} and $$ in a replacement.
std::string Expand(std::string_view replacement, const std::cmatch& match) {
  std::string text;
  while (!replacement.empty()) {
    const char c = replacement.front();
    replacement.remove_prefix(1);
    if (c != '$' || replacement.empty()) {
      text += c;
      continue;
    }
    if (replacement.front() == '$') {
      text += '$';
      replacement.remove_prefix(1);
      continue;
    }
    const bool in_braces = replacement.front() == '{';
    const size_t begin = in_braces ? 1 : 0;
    const size_t end = std::min(replacement.find_first_not_of("0123456789", begin), replacement.size());
    const bool closed = !in_braces || (end < replacement.size() && replacement[end] == '}');
    if (end == begin || end - begin > 3 || !closed) {
      text += c;
      continue;
    }
    size_t group = 0;
    for (size_t i = begin; i < end; ++i) group = group * 10 + static_cast<size_t>(replacement[i] - '0');
    if (group < match.size()) text += match[group].str();
    replacement.remove_prefix(end + (in_braces ? 1 : 0));
  }
  return text;
}

std::string_view ValueOf(const std::vector<OwnedLabel>& labels, std::string_view name) {
  const auto found = std::ranges::find(labels, name, &OwnedLabel::name);
  return found == labels.end() ? std::string_view() : found->value;
}

// A label with an empty value is none.
void Set(std::vector<OwnedLabel>& labels, const std::string& name, std::string value) {
  const auto found = std::ranges::find(labels, name, &OwnedLabel::name);
  if (value.empty()) {
    if (found != labels.end()) labels.erase(found);
  } else if (found != labels.end()) {
    found->value = std::move(value);
  } else {
    labels.push_back({name, std::move(value)});
  }
}

}  // namespace

struct Relabelling::Rule {
  std::vector<std::string> source_labels{};
  std::string separator = ";";
  std::regex regex{};
  std::string target_label{};
  std::string replacement = "$1";
  Action action = Action::kReplace;

  // Errors: what is wrong.
  static Result<Rule> Parse(const Json& json);
  bool Apply(std::string_view family, std::vector<OwnedLabel>& labels) const;
  void MapLabels(std::vector<OwnedLabel>& labels) const;
  void DropLabels(std::vector<OwnedLabel>& labels) const;
};

Result<Relabelling::Rule> Relabelling::Rule::Parse(const Json& json) {
  const auto refuse = [](const std::string& why) { return Fail(ErrorCode::kInvalidArgument, why); };
  if (!json.is_object()) return refuse("is no object");
  Rule rule;
  std::string pattern = "(.*)";
  for (const auto& [key, value] : json.items()) {
    if (key == "source_labels") {
      const auto texts = TextsOf(value);
      if (!texts.has_value()) return refuse("source_labels is no list of texts");
      rule.source_labels = *texts;
      continue;
    }
    if (!value.is_string()) return refuse(fmt::format("{} is no text", key));
    const auto text = value.get<std::string>();
    if (key == "separator") {
      rule.separator = text;
    } else if (key == "regex") {
      pattern = text;
    } else if (key == "target_label") {
      rule.target_label = text;
    } else if (key == "replacement") {
      rule.replacement = text;
    } else if (key == "action") {
      const auto* known = std::ranges::find(kActions, text, &std::pair<std::string_view, Action>::first);
      if (known == std::end(kActions))
        return refuse(fmt::format(
            "has the action {}, not replace, keep, drop, labelmap, labeldrop or labelkeep", text));
      rule.action = known->second;
    } else {
      return refuse(fmt::format("has the unknown key {}", key));
    }
  }
  if (rule.action == Action::kReplace && !IsLabelName(rule.target_label))
    return refuse("needs a target_label: letters, digits and _");
  if (rule.action == Action::kReplace && rule.target_label == kNameLabel)
    return refuse("would rename a metric, which isn't possible here");
  if ((rule.action == Action::kKeep || rule.action == Action::kDrop) && rule.source_labels.empty())
    return refuse("needs source_labels");
  try {
    // Not the default engine, whose time may be exponential, and which recurses.
    rule.regex = std::regex(pattern, std::regex::ECMAScript | std::regex_constants::__polynomial);
  } catch (const std::regex_error& error) {
    return refuse(fmt::format("has an invalid regex {}: {}", pattern, error.what()));
  }
  return rule;
}

bool Relabelling::Rule::Apply(std::string_view family, std::vector<OwnedLabel>& labels) const {
  if (action == Action::kLabelMap) MapLabels(labels);
  if (action == Action::kLabelDrop || action == Action::kLabelKeep) DropLabels(labels);
  if (action != Action::kReplace && action != Action::kKeep && action != Action::kDrop) return true;
  std::string value;
  for (const std::string& label : source_labels) {
    if (&label != &source_labels.front()) value += separator;
    value += label == kNameLabel ? family : ValueOf(labels, label);
  }
  std::cmatch match;
  const bool matches = Matches(regex, value, match);
  if (action == Action::kKeep) return matches;
  if (action == Action::kDrop) return !matches;
  if (matches) Set(labels, target_label, Expand(replacement, match));
  return true;
}

void Relabelling::Rule::MapLabels(std::vector<OwnedLabel>& labels) const {
  const std::vector<OwnedLabel> before = labels;
  for (const OwnedLabel& label : before) {
    std::cmatch match;
    if (!Matches(regex, label.name, match)) continue;
    if (const std::string name = Expand(replacement, match); IsLabelName(name) && name != kNameLabel)
      Set(labels, name, label.value);
  }
}

void Relabelling::Rule::DropLabels(std::vector<OwnedLabel>& labels) const {
  std::erase_if(labels, [&](const OwnedLabel& label) {
    std::cmatch match;
    return Matches(regex, label.name, match) == (action == Action::kLabelDrop);
  });
}

Result<Relabelling> Relabelling::Parse(std::string_view json) {
  const Json parsed = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (!parsed.is_array()) return Fail(ErrorCode::kInvalidArgument, "the rules are not a JSON array");
  if (parsed.size() > kMaxRules)
    return Fail(ErrorCode::kInvalidArgument, fmt::format("there are more than {} rules", kMaxRules));
  std::vector<Rule> rules;
  for (const Json& each : parsed) {
    Result<Rule> rule = Rule::Parse(each);
    if (!rule.has_value())
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("rule {} {}", rules.size() + 1, rule.error().message));
    rules.push_back(*std::move(rule));
  }
  Relabelling relabelling;
  if (!rules.empty()) relabelling.rules_ = std::make_shared<const std::vector<Rule>>(std::move(rules));
  return relabelling;
}

bool Relabelling::Apply(std::string_view family, std::vector<OwnedLabel>& labels) const {
  return rules_ == nullptr ||
         std::ranges::all_of(*rules_, [&](const Rule& rule) { return rule.Apply(family, labels); });
}

}  // namespace gpusonde::exporters::prometheus
