// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>
#include <set>
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

class Relabelling;

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
  // `relabelling` changes the labels of all series, and must outlive the writer; null: nothing does.
  explicit TextWriter(Format format, const Relabelling* relabelling = nullptr)
      : format_(format), relabelling_(relabelling) {}

  void Begin(const Family& family) override {
    family_ = &family;
    begun_ = false;
    written_.clear();
  }
  void Write(std::span<const Label> common, std::initializer_list<Label> labels, double value) override;
  void Write(std::span<const Label> common, std::initializer_list<Label> labels, int64_t value) override;

  std::string Finish();

 private:
  void WriteSeries(std::span<const Label> common, std::initializer_list<Label> labels,
                   std::string_view value);
  void WriteRelabelled(std::span<const Label> common, std::initializer_list<Label> labels,
                       std::string_view value);
  void WriteHead();
  static void AppendLabel(const Label& label, std::string& text);

  Format format_;
  const Relabelling* relabelling_;
  std::set<std::string> written_;  // the labels of the family's series, if rules may make them equal
  int64_t repeated_ = 0;
  const Family* family_ = nullptr;
  bool begun_ = false;
  std::string text_;
};

}  // namespace gpusonde::exporters::prometheus
