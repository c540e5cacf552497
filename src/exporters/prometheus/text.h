// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

namespace gpusonde::exporters::prometheus {

enum class Type : uint8_t { kCounter, kGauge };

// A metric with all its series.
struct Family {
  std::string_view name;
  Type type;
  std::string_view help;  // a phrase without a final stop
};

struct Label {
  std::string_view name;
  std::string_view value;  // any bytes
};

// What gpusonde uses itself.
struct OwnUse {
  double cpu_seconds = 0;
  int64_t memory_bytes = 0;
  double started_seconds = 0;  // since the epoch
};

// The text format 0.0.4 (https://prometheus.io/docs/instrumenting/exposition_formats), or OpenMetrics 1.0.0
// (https://prometheus.io/docs/specs/om/open_metrics_spec), which differs in the names of counters, in
// counters that don't end in _total (unknown there), and in its end.
enum class Format : uint8_t { kText, kOpenMetrics };

// As in the header Content-Type.
std::string_view ContentType(Format format);

// The format that a scraper asks for with this header Accept; the text format unless it names OpenMetrics.
Format FormatFor(std::string_view accept);

// Receives series, family by family.
class SeriesWriter {
 public:
  virtual ~SeriesWriter() = default;

  // Begins a family; a family without series leaves no trace.
  virtual void Begin(const Family& family) = 0;
  // Writes a series of it. `common` precede `labels`.
  virtual void Write(std::span<const Label> common, std::initializer_list<Label> labels, double value) = 0;
  virtual void Write(std::span<const Label> common, std::initializer_list<Label> labels, int64_t value) = 0;

  // The version, and what gpusonde uses itself.
  void WriteOwn(const OwnUse& own);
};

// Writes an exposition as text. Label values may be any bytes: backslash, quote and newline are escaped,
// invalid UTF-8 becomes U+FFFD. Not thread-safe.
class TextWriter : public SeriesWriter {
 public:
  explicit TextWriter(Format format) : format_(format) {}

  void Begin(const Family& family) override {
    family_ = &family;
    begun_ = false;
  }
  void Write(std::span<const Label> common, std::initializer_list<Label> labels, double value) override;
  void Write(std::span<const Label> common, std::initializer_list<Label> labels, int64_t value) override;

  std::string Finish();

 private:
  void WriteSeries(std::span<const Label> common, std::initializer_list<Label> labels,
                   std::string_view value);
  void WriteHead();
  void WriteLabel(const Label& label, bool& first);

  Format format_;
  const Family* family_ = nullptr;
  bool begun_ = false;
  std::string text_;
};

}  // namespace gpusonde::exporters::prometheus
