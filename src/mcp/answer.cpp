// SPDX-License-Identifier: Apache-2.0
#include "mcp/answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/json_depth.h"
#include "base/printable.h"
#include "base/saturated.h"

namespace gpusonde::mcp {
namespace {

// Keeps the order in which a tool writes its keys.
using Json = nlohmann::ordered_json;

// The database shows where in a statement it found an error.
constexpr size_t kMaxErrorCharacters = 2000;

std::string Safe(std::string_view text) { return Shorten(Printable(text), kMaxTextCharacters); }

// Answers are as deep as the API's, and SQL's values as deep as their types.
void MakeSafe(Json& value) {  // NOLINT(misc-no-recursion)
  if (value.is_string()) value = Safe(value.get_ref<const std::string&>());
  if (value.is_array())
    for (Json& element : value) MakeSafe(element);
  if (!value.is_object()) return;
  // SQL makes maps whose keys are texts of the profiled programs.
  Json safe = Json::object();
  for (auto& [key, element] : value.items()) {
    MakeSafe(element);
    safe[Safe(key)] = std::move(element);
  }
  value = std::move(safe);
}

std::string Dump(const Json& value) { return value.dump(-1, ' ', false, Json::error_handler_t::replace); }

// By name of an array, how many of its elements are missing.
using Missing = std::map<std::string, int64_t>;

void CutTo(Json& array, size_t size, int64_t& missing) {
  if (array.size() <= size) return;
  missing = AddSaturated(missing, static_cast<int64_t>(array.size() - size));
  array.erase(array.begin() + static_cast<Json::difference_type>(size), array.end());
}

// Halves the largest array; false if all are empty.
bool Halve(Json& answer, Missing& missing) {
  std::string largest;
  size_t largest_bytes = 0;
  for (const auto& [name, value] : answer.items()) {
    if (!value.is_array() || value.empty()) continue;
    if (const size_t bytes = Dump(value).size(); bytes > largest_bytes) {
      largest = name;
      largest_bytes = bytes;
    }
  }
  if (largest.empty()) return false;
  CutTo(answer[largest], answer[largest].size() / 2, missing[largest]);
  return true;
}

Json CutLines(const Missing& missing, const std::string& uncounted) {
  Json lines = Json::array();
  for (const auto& [name, count] : missing)
    if (count > 0)
      lines.push_back(fmt::format("{}: … {}{} more", name, name == uncounted ? "at least " : "", count));
  return lines;
}

}  // namespace

std::string FinishAnswer(std::string_view found_text, int64_t max_elements) {
  if (IsTooDeep(found_text))
    return ErrorAnswer(fmt::format("the answer nests more than {} levels deep", kMaxJsonDepth));
  Json found = Json::parse(found_text, nullptr, false);
  if (!found.is_object()) return ErrorAnswer("the answer can't be read");
  Missing missing;
  const Json omitted = found.value("omitted", Json());
  for (const auto& [name, count] : omitted.items())
    if (count.is_number_integer()) missing[name] = std::max<int64_t>(count.get<int64_t>(), 0);
  const Json uncounted_list = found.value("uncounted", Json());
  const std::string uncounted = uncounted_list.is_string() ? uncounted_list.get<std::string>() : "";
  found.erase("omitted");
  found.erase("uncounted");
  Json answer = {{"captured_text", kCapturedText}};
  for (auto& [name, value] : found.items()) {
    if (value.is_array()) CutTo(value, static_cast<size_t>(max_elements), missing[name]);
    MakeSafe(value);
    answer[Safe(name)] = std::move(value);
  }
  std::string text;
  do {
    Json lines = CutLines(missing, uncounted);
    answer.erase("cut");
    text = Dump(answer);
    answer["cut"] = std::move(lines);
  } while (text.size() > kMaxAnswerBytes && (answer.erase("cut"), Halve(answer, missing)));
  if (text.size() > kMaxAnswerBytes) return ErrorAnswer("the answer is too large; ask for less");
  return Dump(answer);
}

std::string ErrorAnswer(std::string_view message) {
  return Dump(Json{{"captured_text", kCapturedText},
                   {"error", Shorten(PrintableLines(message), kMaxErrorCharacters)}});
}

}  // namespace gpusonde::mcp
