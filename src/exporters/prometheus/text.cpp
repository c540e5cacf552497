// SPDX-License-Identifier: Apache-2.0
#include "exporters/prometheus/text.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>

#include "base/utf8.h"
#include "base/version.h"
#include "exporters/prometheus/families.h"

namespace gpusonde::exporters::prometheus {
namespace {

constexpr std::string_view kTotal = "_total";

std::string Number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return fmt::format("{}", value);
}

// `quotes`: of a label value; else of HELP, where the text format leaves quotes alone.
void AppendEscaped(std::string& text, std::string_view value, bool quotes) {
  for (const char c : value) {
    if (c == '\n') {
      text += "\\n";
      continue;
    }
    if (c == '\\' || (c == '"' && quotes)) text += '\\';
    text += c;
  }
}

}  // namespace

std::string_view ContentType(Format format) {
  return format == Format::kText ? "text/plain; version=0.0.4; charset=utf-8"
                                 : "application/openmetrics-text; version=1.0.0; charset=utf-8";
}

Format FormatFor(std::string_view accept) {
  return accept.contains("application/openmetrics-text") ? Format::kOpenMetrics : Format::kText;
}

void TextWriter::Write(std::span<const Label> common, std::initializer_list<Label> labels, double value) {
  WriteSeries(common, labels, Number(value));
}

void TextWriter::Write(std::span<const Label> common, std::initializer_list<Label> labels, int64_t value) {
  WriteSeries(common, labels, fmt::format("{}", value));
}

void TextWriter::WriteSeries(std::span<const Label> common, std::initializer_list<Label> labels,
                             std::string_view value) {
  if (!begun_) WriteHead();
  begun_ = true;
  text_ += family_->name;
  bool first = true;
  for (const Label& label : common) WriteLabel(label, first);
  for (const Label& label : labels) WriteLabel(label, first);
  if (!first) text_ += '}';
  fmt::format_to(std::back_inserter(text_), " {}\n", value);
}

void TextWriter::WriteHead() {
  std::string_view name = family_->name;
  std::string_view type = family_->type == Type::kCounter ? "counter" : "gauge";
  if (format_ == Format::kOpenMetrics && family_->type == Type::kCounter) {
    if (name.ends_with(kTotal))
      name.remove_suffix(kTotal.size());
    else
      type = "unknown";
  }
  fmt::format_to(std::back_inserter(text_), "# HELP {} ", name);
  AppendEscaped(text_, family_->help, format_ == Format::kOpenMetrics);
  fmt::format_to(std::back_inserter(text_), ".\n# TYPE {} {}\n", name, type);
}

void TextWriter::WriteLabel(const Label& label, bool& first) {
  fmt::format_to(std::back_inserter(text_), "{}{}=\"", first ? '{' : ',', label.name);
  AppendEscaped(text_, ToUtf8(label.value), true);
  text_ += '"';
  first = false;
}

void SeriesWriter::WriteOwn(const OwnUse& own) {
  Begin(kBuild);
  Write({}, {{"version", kVersion}}, int64_t{1});
  Begin(kOwnCpuSeconds);
  Write({}, {}, own.cpu_seconds);
  Begin(kOwnMemory);
  Write({}, {}, own.memory_bytes);
  Begin(kOwnStart);
  Write({}, {}, own.started_seconds);
}

std::string TextWriter::Finish() {
  if (format_ == Format::kOpenMetrics) text_ += "# EOF\n";
  return std::move(text_);
}

}  // namespace gpusonde::exporters::prometheus
