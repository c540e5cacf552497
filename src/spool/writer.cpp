// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <utility>
#include <vector>

#include "spool/codec.h"
#include "spool/segment.h"
#include "spool/spool.h"

namespace gpusonde::spool {
namespace {

Result<Id128> RandomId() {
  Id128 id;
  if (::getrandom(&id, sizeof id, 0) != sizeof id) return Fail(ErrnoError(errno, "getrandom"));
  return id;
}

}  // namespace

struct Writer::State {
  std::string folder;
  Options options;
  Encoder encoder;
  Fd lock;
  Id128 id;
  std::vector<SegmentName> segments;  // by first sequence; the last one is being written
  Fd segment;
  int64_t segment_size = 0;   // end of its whole frames
  bool tail_is_torn = false;  // there may be bytes of a failed write after segment_size
  int64_t last_sequence = 0;
  int64_t synced = 0;       // last sequence that is known to be on disk
  int64_t synced_size = 0;  // end of the segment's frames that are known to be on disk

  Status Begin();
  Status Resume();
  Status BeginSegment();
  Status CutTail();
  Status Sync();
  void TakeBackUnsynced();
};

Status Writer::State::Begin() {
  ASSIGN_OR_RETURN(segments, ListSegments(folder));
  if (!segments.empty()) return Resume();
  ASSIGN_OR_RETURN(id, RandomId());
  return BeginSegment();
}

Status Writer::State::Resume() {
  ASSIGN_OR_RETURN(SegmentReader reader, SegmentReader::Open(segments.back()));
  id = reader.spool();
  last_sequence = segments.back().first_sequence - 1;
  while (true) {
    ASSIGN_OR_RETURN(const std::optional<SegmentReader::Frame> frame, reader.Next());
    if (!frame.has_value()) break;
    last_sequence = frame->sequence;
  }
  segment_size = reader.offset();
  ASSIGN_OR_RETURN(segment, gpusonde::Open(segments.back().path, O_RDWR));
  tail_is_torn = true;
  TRY(CutTail());
  return Sync();
}

Status Writer::State::BeginSegment() {
  const int64_t first = last_sequence + 1;
  ASSIGN_OR_RETURN(segment, CreateSegment(folder, id, first));
  // After a rollback of all frames of the last segment, the new one has replaced it.
  if (segments.empty() || segments.back().first_sequence != first)
    segments.push_back(NameSegment(folder, first));
  segment_size = synced_size = kSegmentHeaderBytes;
  tail_is_torn = false;
  return {};
}

Status Writer::State::CutTail() {
  if (!tail_is_torn) return {};
  const std::string& path = segments.back().path;
  if (::ftruncate(segment.get(), segment_size) != 0) return Fail(ErrnoError(errno, "truncate " + path));
  if (::lseek(segment.get(), segment_size, SEEK_SET) < 0) return Fail(ErrnoError(errno, "seek in " + path));
  tail_is_torn = false;
  return {};
}

Status Writer::State::Sync() {
  if (!segment.valid()) return {};  // everything up to last_sequence was synced before
  // A torn tail that couldn't be truncated is synced too; readers detect it by its checksum.
  if (::fsync(segment.get()) != 0) {
    Error error = ErrnoError(errno, "fsync " + segments.back().path);
    TakeBackUnsynced();
    return Fail(std::move(error));
  }
  synced = last_sequence;
  synced_size = segment_size;
  return {};
}

// Closes the segment, whose unsynced frames may or may not be on disk. Truncating them isn't required: a
// reader stops at the number with which the next segment begins, the one after the last synced frame.
void Writer::State::TakeBackUnsynced() {
  static_cast<void>(::ftruncate(segment.get(), synced_size));
  segment.Close();
  last_sequence = synced;
}

Writer::Writer(std::unique_ptr<State> state) : state_(std::move(state)) {}
Writer::Writer(Writer&&) noexcept = default;
Writer& Writer::operator=(Writer&&) noexcept = default;
Writer::~Writer() = default;

Result<Writer> Writer::Open(const std::string& folder, Options options) {
  auto state = std::make_unique<State>();
  state->folder = folder;
  state->options = options;
  state->encoder = Encoder(options.compression_level);
  ASSIGN_OR_RETURN(state->lock, LockFolder(folder));
  TRY(state->Begin());
  return Writer(std::move(state));
}

Result<int64_t> Writer::Append(const model::Batch& batch) {
  State& state = *state_;
  ASSIGN_OR_RETURN(const std::vector<std::byte> payload, state.encoder.Encode(batch));
  if (!state.segment.valid()) TRY(state.BeginSegment());
  TRY(state.CutTail());
  if (state.segment_size >= state.options.segment_bytes &&
      state.last_sequence >= state.segments.back().first_sequence) {
    // Only the last segment may end in frames that never reached the disk.
    TRY(state.Sync());
    TRY(state.BeginSegment());
  }
  const int64_t sequence = state.last_sequence + 1;
  const std::vector<std::byte> frame = MakeFrame(state.id, sequence, state.synced, payload);
  if (const Status written = WriteAll(state.segment.get(), frame); !written.has_value()) {
    state.tail_is_torn = true;
    static_cast<void>(state.CutTail());  // if this fails too, the next Append tries again
    return Fail(Error(written.error()).With(state.segments.back().path));
  }
  state.segment_size += static_cast<int64_t>(frame.size());
  state.last_sequence = sequence;
  return sequence;
}

Status Writer::Sync() { return state_->Sync(); }

Writer::Stored Writer::Store(std::span<const model::Batch> batches) {
  Stored stored{.sequences = std::vector<int64_t>(batches.size()), .failure = {}};
  const auto note = [&](const Error& error) {
    if (!stored.failure.has_value()) stored.failure = error;
    for (int64_t& sequence : stored.sequences)
      if (sequence > state_->last_sequence) sequence = 0;  // rolled back, and the number may be reused
  };
  for (size_t i = 0; i < batches.size() && !stored.failure.has_value(); ++i) {
    if (const Result<int64_t> appended = Append(batches[i]); appended.has_value())
      stored.sequences[i] = *appended;
    else
      note(appended.error());
  }
  if (const Status synced = Sync(); !synced.has_value()) note(synced.error());
  for (size_t i = 0; i < batches.size(); ++i)
    if (stored.sequences[i] == 0) stored.lost_rows += static_cast<int64_t>(batches[i].rows);
  return stored;
}

Status Writer::DropThrough(int64_t sequence) {
  std::vector<SegmentName>& segments = state_->segments;
  // Oldest first, each made durable, so that a crash in between leaves no gap.
  while (segments.size() > 1 && segments[1].first_sequence <= sequence + 1) {
    const std::string& path = segments.front().path;
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) return Fail(ErrnoError(errno, "delete " + path));
    TRY(SyncFolderOf(path));
    segments.erase(segments.begin());
  }
  return {};
}

Status Writer::SkipTo(int64_t sequence) {
  TRY(state_->Sync());
  const int64_t before = state_->last_sequence;
  state_->last_sequence = state_->synced = sequence;
  if (Status begun = state_->BeginSegment(); !begun.has_value()) {
    state_->last_sequence = state_->synced = before;
    return begun;
  }
  return DropThrough(sequence);
}

Id128 Writer::id() const { return state_->id; }
int64_t Writer::last_sequence() const { return state_->last_sequence; }
int64_t Writer::first_sequence() const { return state_->segments.front().first_sequence; }

}  // namespace gpusonde::spool
