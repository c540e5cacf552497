// SPDX-License-Identifier: Apache-2.0
#include "importers/kineto/kineto.h"

#include <fmt/format.h>

#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "importers/kineto/event_parser.h"
#include "importers/kineto/metadata.h"
#include "importers/kineto/pair_joiner.h"
#include "importers/kineto/splitter.h"

namespace gpusonde::importers::kineto {
namespace {

// Chrome-style traces of other profilers, by what is in their metadata, which comes first. Their GPU work has
// no category, so that they would seem to have none.
constexpr std::array<std::pair<std::string_view, std::string_view>, 2> kOtherProfilers = {
    {{R"("name":"process_name","sort_index")",
      "a trace of ROCm's rocprof, which is not read; of AMD's GPUs, traces of PyTorch's and JAX's profilers "
      "are"},
     {R"(:0 Compute")",
      "a timeline of TensorFlow's RunMetadata, which is not read; TensorFlow 2's profiler (tf.profiler) "
      "writes a *.trace.json.gz, which is"}}};

// Errors: kUnsupported if the first events of the trace say that another profiler wrote them.
Status CheckProfiler(std::string_view events, const std::string& path) {
  constexpr size_t kMetadataBytes = size_t{64} << 10;
  const std::string_view head = events.substr(0, kMetadataBytes);
  for (const auto& [mark, what] : kOtherProfilers)
    if (head.find(mark) != std::string_view::npos)
      return Fail(ErrorCode::kUnsupported, fmt::format("{}: {}", path, what));
  return {};
}

class Reader final : public ShardReader {
 public:
  Reader(std::string path, EventSink& sink, Reading reading, std::shared_ptr<const XlaTracks> xla)
      : path_(std::move(path)), parser_(sink, reading, std::move(xla)) {}

  Status Read(const Shard& shard) override {
    Status done = parser_.Parse(shard.text, shard.ends);
    if (done.has_value()) return done;
    return Fail(std::move(done).error().With(fmt::format("{}: events from byte {}", path_, shard.first)));
  }

 private:
  std::string path_;
  EventParser parser_;
};

class KinetoTrace final : public Trace {
 public:
  KinetoTrace(std::unique_ptr<ByteSource> source, const OpenOptions& options)
      : source_(std::move(source)), options_(options), splitter_(*source_) {}

  const TraceInfo& info() const override { return info_; }

  Result<bool> Next(Shard& shard) override {
    shard.first = splitter_.offset();
    EventSplitter::Chunk chunk{.text = std::move(shard.text), .ends = std::move(shard.ends)};
    auto more = splitter_.Next(chunk);
    if (more.has_value() && *more && shards_ == 0) {
      TRY(CheckProfiler(chunk.text, source_->path()));
      xla_->Learn(chunk.text);
    }
    if (more.has_value()) more = JoinPairs(*more, chunk);
    shard.text = std::move(chunk.text);
    shard.ends = std::move(chunk.ends);
    if (!more.has_value() && options_.partial && more.error().code == ErrorCode::kCorrupt && shards_ > 0) {
      info_.truncated = true;
      return false;
    }
    if (!more.has_value()) return more;
    if (!*more) {
      TRY(Finish());
      return false;
    }
    shard.index = shards_++;
    return true;
  }

  Result<std::unique_ptr<ShardReader>> MakeReader(EventSink& sink) const override {
    const Reading reading = !options_.detail    ? Reading::kForAnalysis
                            : options_.gpu_only ? Reading::kGpuWork
                                                : Reading::kAll;
    return std::make_unique<Reader>(source_->path(), sink, reading, xla_);
  }

 private:
  // Whether there is a chunk.
  bool JoinPairs(bool more, EventSplitter::Chunk& chunk) {
    // A search in all chunks would cost every trace a part of its reading.
    constexpr uint64_t kSearchedShards = (size_t{4} << 20) / EventSplitter::kChunkBytes;
    if (more && !joiner_.has_value() && shards_ < kSearchedShards && PairJoiner::MayHavePairs(chunk.text))
      joiner_.emplace();
    if (!joiner_.has_value()) return more;
    if (!more) return joiner_->Finish(chunk);
    joiner_->Join(chunk);
    return true;
  }

  Status Finish() {
    const Metadata metadata = ParseMetadata(splitter_.metadata());
    info_.truncated = splitter_.truncated() || source_->truncated() || !metadata.complete;
    info_.epoch_offset_ns = EpochOffsetOf(metadata.base_time_ns.value_or(0));
    info_.rank = metadata.rank;
    info_.devices = metadata.devices;
    if (options_.partial) return {};
    if (!info_.truncated && !metadata.valid)
      return Fail(ErrorCode::kCorrupt,
                  source_->path() + ": the text around its events is not JSON; --partial ignores it");
    if (!info_.truncated) return {};
    return Fail(
        ErrorCode::kCorrupt,
        fmt::format("{}: cut off: the last whole event ends at byte {}{}; --partial reads what is there",
                    source_->path(), splitter_.offset(),
                    source_->truncated() ? " of the uncompressed trace" : ""));
  }

  std::unique_ptr<ByteSource> source_;
  OpenOptions options_;
  EventSplitter splitter_;
  std::shared_ptr<XlaTracks> xla_ = std::make_shared<XlaTracks>();  // complete before the first shard is read
  std::optional<PairJoiner> joiner_;                                // once there were begins
  TraceInfo info_{.format = TraceFormat::kKinetoJson};
  uint64_t shards_ = 0;
};

}  // namespace

Result<std::unique_ptr<Trace>> OpenKineto(std::unique_ptr<ByteSource> source, const OpenOptions& options) {
  return std::make_unique<KinetoTrace>(std::move(source), options);
}

}  // namespace gpusonde::importers::kineto
