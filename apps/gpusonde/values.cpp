// SPDX-License-Identifier: Apache-2.0
#include "values.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <regex>
#include <string_view>
#include <utility>

#include "base/ascii.h"
#include "base/text.h"

namespace gpusonde::app {
namespace {

// 31 years in seconds, an exabyte in gigabytes: as nanoseconds and bytes both fit into int64_t.
constexpr double kMaxPositive = 1e9;

std::optional<double> ParseFinite(std::string_view text) {
  const std::optional<double> value = ParseNumber<double>(text);
  return value.has_value() && std::isfinite(*value) ? value : std::nullopt;
}

// "5%" or "5" is 5.
std::optional<double> ParsePercent(std::string_view text) {
  return ParseFinite(text.substr(0, text.size() - (text.ends_with('%') ? 1 : 0)));
}

constexpr std::pair<std::string_view, double> kUnits[] = {
    {"", 1},         {"b", 1},        {"k", 1e3},      {"kb", 1e3},     {"m", 1e6},
    {"mb", 1e6},     {"g", 1e9},      {"gb", 1e9},     {"t", 1e12},     {"tb", 1e12},
    {"kib", 0x1p10}, {"mib", 0x1p20}, {"gib", 0x1p30}, {"tib", 0x1p40},
};

std::optional<uint64_t> ParseSize(std::string_view text) {
  constexpr double kMaxBytes = 1e18;
  const size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
  const std::optional<double> value = ParseFinite(text.substr(0, digits));
  std::string_view rest = text.substr(digits);
  rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  const std::string unit = ToLower(std::string(rest));
  const auto* const found = std::ranges::find(kUnits, unit, &std::pair<std::string_view, double>::first);
  if (!value.has_value() || found == std::end(kUnits) || *value * found->second > kMaxBytes)
    return std::nullopt;
  return static_cast<uint64_t>(*value * found->second);
}

}  // namespace

CLI::Validator Size() {
  return {[](std::string& input) {
            const std::optional<uint64_t> bytes = ParseSize(input);
            if (!bytes.has_value()) return fmt::format("'{}' is not a size, such as 20GB or 512MiB", input);
            input = fmt::format("{}", *bytes);
            return std::string();
          },
          "SIZE"};
}

CLI::Validator Path() {
  return {[](std::string& input) {
            return input.empty() ? std::string("an empty path names no file: is a variable unset?") : "";
          },
          ""};
}

CLI::Validator Regex() {
  return {[](std::string& input) -> std::string {
            try {
              std::regex compiled;
              compiled.assign(input, std::regex::ECMAScript);
              return "";
            } catch (const std::regex_error& error) {
              return fmt::format("'{}' is not a regular expression: {}", input, error.what());
            }
          },
          "REGEX"};
}

CLI::Validator OneOf(std::vector<std::string> values) {
  const std::string label = fmt::format("{}", fmt::join(values, "|"));
  return {[values = std::move(values)](std::string& input) {
            if (std::ranges::find(values, input) != values.end()) return std::string();
            return fmt::format("'{}' is not one of: {}", input, fmt::join(values, ", "));
          },
          label};
}

CLI::Validator WholeNumber(std::string name, int64_t min, int64_t max) {
  return {[=](std::string& input) {
            const std::optional<int64_t> value = ParseNumber<int64_t>(input);
            if (value.has_value() && *value >= min && *value <= max) return std::string();
            return max == kAnyWhole
                       ? fmt::format("'{}' is not a whole number of at least {}", input, min)
                       : fmt::format("'{}' is not a whole number from {} to {}", input, min, max);
          },
          std::move(name)};
}

CLI::Validator Number(std::string name, double min, double max, bool also_zero) {
  return {[=](std::string& input) {
            const std::optional<double> value = ParseFinite(input);
            if (value.has_value() && ((*value >= min && *value <= max) || (also_zero && *value == 0)))
              return std::string();
            return fmt::format("'{}' is not a number from {:.10g} to {:.10g}{}", input, min, max,
                               also_zero ? ", or 0" : "");
          },
          std::move(name)};
}

CLI::Validator Percentage() {
  return {[](std::string& input) {
            const std::optional<double> value = ParsePercent(input);
            if (!value.has_value() || *value < 0 || *value > 1000)
              return fmt::format("{}: write a percentage, such as 5%", input);
            input = fmt::format("{}", *value / 100);
            return std::string();
          },
          "PERCENT"};
}

CLI::Validator Percentage(double min, double max) {
  return {[=](std::string& input) {
            const std::optional<double> value = ParsePercent(input);
            if (!value.has_value() || *value < min || *value > max)
              return fmt::format("'{}' is not a percentage from {:g}% to {:g}%", input, min, max);
            input = fmt::format("{}", *value / 100);
            return std::string();
          },
          "PERCENT"};
}

CLI::Validator PositiveNumber(std::string name) {
  return {[](std::string& input) {
            const std::optional<double> value = ParseFinite(input);
            return value.has_value() && *value > 0 && *value <= kMaxPositive
                       ? std::string()
                       : fmt::format("'{}' is not a number greater than 0 and at most {:.0f}", input,
                                     kMaxPositive);
          },
          std::move(name)};
}

}  // namespace gpusonde::app
