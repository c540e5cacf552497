// SPDX-License-Identifier: Apache-2.0
#include "importers/ncu/launch_reader.h"

#include <functional>
#include <limits>

#include "importers/decimal.h"

namespace gpusonde::importers::ncu {
namespace {

// Metrics with the duration of a launch; the first one in a launch counts.
bool IsDuration(std::string_view metric) {
  return metric == "gpu__time_duration.sum" || metric == "gpu__time_duration.avg" ||
         metric == "gpu__time_duration.max" || metric == "Duration";
}

// "(128, 1, 1)".
void ReadExtents(std::string_view text, int64_t* extents) {
  for (size_t i = 0; i < 3; ++i) {
    const size_t begin = text.find_first_of("0123456789");
    if (begin == std::string_view::npos) return;
    const size_t end = std::min(text.find_first_not_of("0123456789", begin), text.size());
    extents[i] = ParseWhole(text.substr(begin, end - begin)).value_or(0);
    text.remove_prefix(end);
  }
}

// A process of a host as one number; PidOf returns the process's pid.
int64_t ProcessOf(std::string_view host, std::string_view process) {
  const int64_t pid = PidOf(ParseWhole(process).value_or(0));
  if (host.empty()) return pid;
  uint64_t hash = 0xCBF29CE484222325;  // FNV-1a
  for (const char c : host) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3;
  return static_cast<int64_t>(hash >> 32) << 24 | pid;
}

}  // namespace

std::string_view LaunchReader::At(const Cells& cells, size_t column) const {
  return column < cells.size() ? cells[column] : std::string_view();
}

const LaunchReader::Metric& LaunchReader::MetricOf(std::string_view name, std::string_view unit) {
  std::string key(name);
  key += '\0';
  key += unit;
  const auto known = metrics_.find(key);
  if (known != metrics_.end()) return known->second;
  Metric metric{.name = sink_.Name(name), .scale = NormaliseUnit(unit), .is_duration = IsDuration(name)};
  metric.unit = sink_.Name(metric.scale.name);
  metric.is_duration = metric.is_duration && metric.scale.name == "ns";
  return metrics_.emplace(std::move(key), std::move(metric)).first->second;
}

Status LaunchReader::Read(const Shard& shard) {
  mark_ = static_cast<DecimalMark>(shard.source);
  std::string_view text = shard.text;
  bool first = true;
  bool units = false;
  while (!text.empty()) {
    const size_t length = RowLength(text).value_or(text.size());
    const Cells& cells = parser_.Parse(text.substr(0, length));
    text.remove_prefix(length);
    if (first) {
      columns_ = ReadColumns(cells).value_or(Columns());
      units = !columns_.is_long();
      first = false;
    } else if (units) {  // the row below the names
      units = false;
      wide_.clear();
      for (const auto& [column, name] : columns_.metrics) wide_.push_back(&MetricOf(name, At(cells, column)));
    } else if (cells.size() != columns_.count) {
      sink_.Drop(Dropped::kMalformed, 1);
    } else {
      columns_.is_long() ? ReadLong(cells) : ReadWide(cells);
    }
  }
  End();
  if (texts_ > 0) sink_.MetricTexts(texts_);
  texts_ = 0;
  return {};
}

void LaunchReader::ReadLong(const Cells& cells) {
  // Rows of one launch follow each other.
  std::string launch;
  for (const size_t column : {columns_.id, columns_.process, columns_.host, columns_.kernel}) {
    launch += At(cells, column);
    launch += '\0';
  }
  if (!open_ || launch != launch_) {
    End();
    Begin(cells);
    launch_ = std::move(launch);
  }
  const std::string_view name = At(cells, columns_.metric);
  if (name.empty() || IsDeviceAttribute(name)) return;  // empty: a rule's row
  AddValue(MetricOf(name, At(cells, columns_.unit)), At(cells, columns_.value));
}

void LaunchReader::ReadWide(const Cells& cells) {
  Begin(cells);
  for (size_t i = 0; i < wide_.size(); ++i) AddValue(*wide_[i], cells[columns_.metrics[i].first]);
  End();
}

void LaunchReader::Begin(const Cells& cells) {
  open_ = true;
  values_.clear();
  current_ = {.process = ProcessOf(At(cells, columns_.host), At(cells, columns_.process)),
              .name = sink_.Name(At(cells, columns_.kernel))};
  if (const std::string_view process = At(cells, columns_.process_name); !process.empty())
    sink_.NameProcess(current_.process, process);
  const int64_t device = ParseWhole(At(cells, columns_.device)).value_or(0);
  if (device > 0 && device <= std::numeric_limits<int32_t>::max())
    current_.device = static_cast<int32_t>(device);
  std::array<int64_t, 6> extents{};
  ReadExtents(At(cells, columns_.grid), extents.data());
  ReadExtents(At(cells, columns_.block), extents.data() + 3);
  current_.shape = ShapeOf(extents);
}

void LaunchReader::AddValue(const Metric& metric, std::string_view text) {
  if (text.empty()) return;
  const std::optional<int64_t> value = ParseNumber(text, mark_, metric.scale.exponent);
  if (!value.has_value()) {
    ++texts_;
    return;
  }
  values_.push_back({.metric = metric.name, .unit = metric.unit, .value = *value});
  if (!metric.is_duration || current_.duration_ns.has_value() || *value < 0) return;
  int64_t unit = 1;
  for (int i = 0; i < metric.scale.decimals; ++i) unit *= 10;
  current_.duration_ns = (*value + unit / 2) / unit;
}

void LaunchReader::End() {
  if (open_) sink_.Launch(current_, values_);
  open_ = false;
}

}  // namespace gpusonde::importers::ncu
