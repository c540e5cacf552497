// SPDX-License-Identifier: Apache-2.0
#include "importers/ncu/ncu.h"

#include <fmt/format.h>

#include <optional>
#include <span>
#include <utility>

#include "base/ascii.h"
#include "base/text.h"
#include "importers/ncu/csv.h"
#include "importers/ncu/launch_reader.h"
#include "importers/ncu/number.h"

namespace gpusonde::importers::ncu {
namespace {

constexpr size_t kShardBytes = size_t{1} << 20;
// No row is longer: a thousand metrics of 100 bytes are a tenth of this.
constexpr size_t kMaxRowBytes = size_t{1} << 20;
// How many bytes are examined to find the decimal mark.
constexpr size_t kLookBytes = size_t{4} << 20;

// A quick check whether a line may name columns.
bool MayBeColumns(std::string_view line) {
  return (line.starts_with("\"ID\"") || line.starts_with("ID,")) &&
         line.find("Kernel Name") != std::string_view::npos;
}

class NcuTrace final : public Trace {
 public:
  NcuTrace(std::unique_ptr<ByteSource> source, const OpenOptions& options)
      : source_(std::move(source)), options_(options) {}

  const TraceInfo& info() const override { return info_; }

  Result<bool> Next(Shard& shard) override {
    if (!begun_) TRY(Begin());
    shard.text = header_;
    shard.source = static_cast<uint64_t>(mark_);
    shard.first = offset_;
    bool any = false;
    while (true) {
      ASSIGN_OR_RETURN(const bool found, NextRow());
      if (!found) break;
      if (MayBeColumns(row_)) {  // another table begins
        if (any) break;
        TRY(BeginTable());
        shard.text = header_;
        continue;
      }
      const bool is_row = row_[0] == '"' || IsDigit(row_[0]);
      if (!is_row || header_.empty()) {  // a message, or what the program printed
        Advance();
        continue;
      }
      if (shard.text.size() >= kShardBytes && LaunchOf(row_) != launch_) break;
      launch_ = LaunchOf(row_);
      if (unfinished_) last_ = row_;
      shard.text += row_;
      any = true;
      Advance();
    }
    if (!any) return Finish();
    shard.index = shards_++;
    return true;
  }

  Result<std::unique_ptr<ShardReader>> MakeReader(EventSink& sink) const override {
    return std::make_unique<LaunchReader>(sink);
  }

 private:
  // Examines the first numbers, so that all threads parse them alike.
  Status Begin() {
    begun_ = true;
    TRY(Fill(kLookBytes));
    DecimalMarkFinder finder;
    RowParser parser;
    std::string_view text = buffer_;
    std::optional<Columns> columns;
    while (const auto length = RowLength(text)) {
      const std::string_view row = text.substr(0, *length);
      text.remove_prefix(*length);
      const auto& cells = parser.Parse(row);
      if (MayBeColumns(row)) {
        columns = ReadColumns(cells);
      } else if (columns.has_value() && cells.size() == columns->count) {
        if (columns->is_long()) finder.Look(cells[columns->value]);
        for (const auto& [column, name] : columns->metrics) finder.Look(cells[column]);
      }
    }
    mark_ = finder.mark();
    return {};
  }

  // Makes the row of columns, and in the wide form the row of units, the header of the following shards.
  Status BeginTable() {
    RowParser parser;
    const auto columns = ReadColumns(parser.Parse(row_));
    header_.assign(row_);
    launch_.clear();
    Advance();
    if (!columns.has_value()) header_.clear();
    if (!columns.has_value() || columns->is_long()) return {};
    ASSIGN_OR_RETURN(const bool found, NextRow());
    const bool has_units = found && parser.Parse(row_)[0].empty();  // the launch's id has no unit
    header_ += has_units ? row_ : std::string_view("\"\"\n");
    if (has_units) Advance();
    return {};
  }

  // What distinguishes the rows of one launch from those of the next: the first two cells, the ids of launch
  // and process.
  static std::string LaunchOf(std::string_view row) {
    size_t end = 0;
    for (int commas = 0; commas < 2 && end != std::string_view::npos; ++commas) end = row.find(',', end + 1);
    return std::string(row.substr(0, end));
  }

  // The row at the beginning of what is left, as row_; false at the end.
  Result<bool> NextRow() {
    while (true) {
      const std::string_view left = std::string_view(buffer_).substr(at_);
      std::optional<size_t> length = RowLength(left);
      if (!length.has_value() && ended_ && !left.empty()) {
        unfinished_ = true;
        length = left.size();
      }
      if (length.has_value()) {
        row_ = left.substr(0, *length);
        return true;
      }
      if (ended_) return false;
      if (left.size() > kMaxRowBytes)
        return Fail(ErrorCode::kCorrupt, fmt::format("{}: byte {}: a row of more than {} bytes",
                                                     source_->path(), offset_, kMaxRowBytes));
      TRY(Fill(kMaxRowBytes));
    }
  }

  void Advance() {
    at_ += row_.size();
    offset_ += row_.size();
  }

  Status Fill(size_t bytes) {
    buffer_.erase(0, at_);
    at_ = 0;
    const size_t size = buffer_.size();
    buffer_.resize(size + bytes);
    ASSIGN_OR_RETURN(const size_t count, source_->Read(std::span(buffer_).subspan(size)));
    ended_ = count < bytes;
    buffer_.resize(size + count);
    return {};
  }

  // A last row without a line break may be complete; if it has fewer cells than columns, it is cut off, and
  // the reader counts it as malformed.
  Result<bool> Finish() {
    RowParser parser;
    bool cut = source_->truncated();
    if (unfinished_ && !header_.empty()) {
      const size_t columns = parser.Parse(std::string_view(header_).substr(0, *RowLength(header_))).size();
      cut = cut || parser.Parse(last_).size() != columns;
    }
    if (header_.empty())
      return Fail(ErrorCode::kCorrupt, source_->path() + ": its row of columns is cut off");
    info_.truncated = cut;
    if (!cut || options_.partial) return false;
    return Fail(ErrorCode::kCorrupt, fmt::format("{}: cut off at byte {}; --partial reads what is there",
                                                 source_->path(), offset_));
  }

  std::unique_ptr<ByteSource> source_;
  OpenOptions options_;
  TraceInfo info_{.format = TraceFormat::kNcuCsv};
  bool begun_ = false;
  bool ended_ = false;
  bool unfinished_ = false;
  DecimalMark mark_ = DecimalMark::kPoint;
  std::string buffer_;
  size_t at_ = 0;
  uint64_t offset_ = 0;
  std::string_view row_;
  std::string header_;  // rows that every shard begins with
  std::string launch_;  // of the last row taken
  std::string last_;    // the last row of the file, if it has no line break
  uint64_t shards_ = 0;
};

}  // namespace

bool IsNcu(std::string_view head) {
  while (!head.empty())
    if (MayBeColumns(TakeLine(head))) return true;
  return false;
}

Result<std::unique_ptr<Trace>> OpenNcu(std::unique_ptr<ByteSource> source, const OpenOptions& options) {
  return std::make_unique<NcuTrace>(std::move(source), options);
}

}  // namespace gpusonde::importers::ncu
