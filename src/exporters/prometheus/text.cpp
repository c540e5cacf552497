// SPDX-License-Identifier: Apache-2.0
#include "exporters/prometheus/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <vector>

#include "base/utf8.h"
#include "base/version.h"
#include "exporters/prometheus/families.h"
#include "exporters/prometheus/relabelling.h"

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

// Puts braces around the labels that begin at `begin`, if there are any.
void CloseLabels(std::string& text, size_t begin) {
  if (text.size() == begin) return;
  text[begin] = '{';
  text += '}';
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
  if (relabelling_ != nullptr && !relabelling_->empty()) return WriteRelabelled(common, labels, value);
  if (!begun_) WriteHead();
  begun_ = true;
  text_ += family_->name;
  const size_t begin = text_.size();
  for (const Label& label : common) AppendLabel(label, text_);
  for (const Label& label : labels) AppendLabel(label, text_);
  CloseLabels(text_, begin);
  fmt::format_to(std::back_inserter(text_), " {}\n", value);
}

// Prometheus refuses an exposition in which a series is there twice.
void TextWriter::WriteRelabelled(std::span<const Label> common, std::initializer_list<Label> labels,
                                 std::string_view value) {
  std::vector<OwnedLabel> relabelled;
  for (const Label& label : common) relabelled.push_back({std::string(label.name), ToUtf8(label.value)});
  for (const Label& label : labels) relabelled.push_back({std::string(label.name), ToUtf8(label.value)});
  if (!relabelling_->Apply(family_->name, relabelled)) return;
  std::ranges::sort(relabelled, {}, &OwnedLabel::name);
  std::string text;
  for (const OwnedLabel& label : relabelled) AppendLabel({label.name, label.value}, text);
  CloseLabels(text, 0);
  if (!written_.insert(text).second) {
    ++repeated_;
    return;
  }
  if (!begun_) WriteHead();
  begun_ = true;
  fmt::format_to(std::back_inserter(text_), "{}{} {}\n", family_->name, text, value);
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

// Each begins with a comma, of which CloseLabels makes the first a brace.
void TextWriter::AppendLabel(const Label& label, std::string& text) {
  fmt::format_to(std::back_inserter(text), ",{}=\"", label.name);
  AppendEscaped(text, ToUtf8(label.value), true);
  text += '"';
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
  if (relabelling_ != nullptr && !relabelling_->empty()) {
    Begin(kRepeated);
    Write({}, {}, repeated_);
  }
  if (format_ == Format::kOpenMetrics) text_ += "# EOF\n";
  return std::move(text_);
}

}  // namespace gpusonde::exporters::prometheus
