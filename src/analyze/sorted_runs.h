// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "analyze/packed_records.h"
#include "analyze/run_memory.h"
#include "analyze/sort_records.h"
#include "analyze/temporary_file.h"
#include "base/result.h"

// External sorting: records are collected in runs, each sorted. Full ones stay in memory as they are while
// RunMemory has some left, and are packed and written to disk after that; all runs are merged when read.
namespace gpusonde::analyze {

// Sorted records: as they are, or packed in memory or in a part of a file. `Change` is applied to each packed
// record when it is read and must keep the order.
template <class Record, class Change>
struct Run {
  std::vector<Record, RunAllocator<Record>> records;
  std::vector<std::byte> packed;        // and padding
  RunMemory share;                      // of both, if it is a full run
  std::shared_ptr<TemporaryFile> file;  // null: in memory
  uint64_t offset = 0;
  uint64_t bytes = 0;                    // packed
  uint64_t count = 0;                    // of records
  std::shared_ptr<const Change> change;  // null: none

  bool IsPacked() const { return records.empty(); }
};

struct NoChange {
  template <class Record>
  void operator()(Record&) const {}
  NoChange Then(const NoChange&) const { return {}; }
};

// The bytes of a packed run from `first` on, as many as there is room for. Errors: those of reading its file.
template <class Record, class Change>
Status CopyBytes(const Run<Record, Change>& run, uint64_t first, std::span<std::byte> into) {
  if (run.file != nullptr) return run.file->Read(run.offset + first, into);
  std::memcpy(into.data(), run.packed.data() + first, into.size());
  return {};
}

// Collects records; not thread-safe.
template <class Record, class Less, class Change = NoChange>
class SortedRuns {
  static_assert(std::is_trivially_copyable_v<Record>);

 public:
  // Runs of 2 MiB are sorted in the cache, and 2,000 of them, 4 GiB of records, are merged with 64 MiB of
  // buffers.
  static constexpr size_t kRunRecords = (size_t{2} << 20) / sizeof(Record);

  // Runs are written to `file`, which others in the same thread may write too.
  explicit SortedRuns(std::shared_ptr<TemporaryFile> file) : file_(std::move(file)) {}

  void Add(const Record& record) {
    if (buffer_.size() == buffer_.capacity()) MakeRoom();
    buffer_.push_back(record);
  }

  // Ends a run and packs it, to free the memory of its records.
  void Spill() {
    if (!buffer_.empty()) {
      SortBuffer();
      Store(Packed(buffer_), buffer_.size(), nullptr);
    }
    buffer_ = {};
  }
  size_t buffered_bytes() const { return buffer_.size() * sizeof(Record); }

  // Adds a packed run of another process.
  void AddRun(std::span<const std::byte> bytes, uint64_t count, std::shared_ptr<const Change> change) {
    if (count == 0) return;
    Bytes copy;
    copy.reserve(bytes.size() + kRunPadding<Record>);
    copy.assign(bytes.begin(), bytes.end());
    Store(std::move(copy), count, std::move(change));
  }
  // Adds one that is in a file.
  void AddRun(const std::shared_ptr<TemporaryFile>& file, uint64_t offset, uint64_t bytes, uint64_t count,
              std::shared_ptr<const Change> change) {
    if (count > 0)
      runs_.push_back({.records = {},
                       .packed = {},
                       .share = {},
                       .file = file,
                       .offset = offset,
                       .bytes = bytes,
                       .count = count,
                       .change = std::move(change)});
  }

  // Moves in the runs of another; `change` is applied to their records.
  void Take(SortedRuns&& other, const std::shared_ptr<const Change>& change) {
    other.Sort();
    if (!other.status_.has_value()) status_ = other.status_;
    // Runs that come from the same thread or process have the same change.
    std::shared_ptr<const Change> before;
    std::shared_ptr<const Change> both;
    for (Run<Record, Change>& run : other.runs_) {
      if (run.change != nullptr && run.change != before) {
        before = run.change;
        both = std::make_shared<const Change>(before->Then(*change));
      }
      if (run.IsPacked())
        run.change = run.change == nullptr ? change : both;
      else
        for (Record& record : run.records) (*change)(record);
      runs_.push_back(std::move(run));
    }
    other.runs_.clear();
  }

  // Sorts the remaining records.
  void Sort() {
    if (buffer_.empty()) return;
    SortBuffer();
    Keep({});
  }
  // Likewise. Errors: those of writing any run.
  Status Finish() {
    Sort();
    return status_;
  }

  std::span<const Run<Record, Change>> runs() const { return runs_; }
  // Packs those in memory, so that they can be sent.
  void Pack() {
    for (Run<Record, Change>& run : runs_) {
      if (run.IsPacked()) continue;
      run.packed = Packed(run.records);
      run.bytes = run.packed.size();
      run.packed.resize(run.bytes + kRunPadding<Record>);
      run.records = {};
      run.share = {};
    }
  }
  // Moves them out.
  std::vector<Run<Record, Change>> TakeRuns() { return std::exchange(runs_, {}); }
  // The number of records in all runs.
  uint64_t count() const {
    uint64_t all = 0;
    for (const auto& run : runs_) all += run.count;
    return all;
  }

 private:
  using Buffer = std::vector<Record, RunAllocator<Record>>;
  using Bytes = std::vector<std::byte>;
  using Packer = std::conditional_t<kIsPacked<Record>, RecordPacker<Record>, PlainPacker<Record>>;

  // A small trace needs little memory, a larger one a whole run's, which isn't moved then.
  void MakeRoom() {
    if (buffer_.size() >= kRunRecords) return EndRun();
    const bool is_small = buffer_.size() < kRunRecords / 16;
    buffer_.reserve(is_small ? std::max<size_t>(64, 2 * buffer_.size()) : kRunRecords);
  }

  void EndRun() {
    SortBuffer();
    if (auto share = RunMemory::Take(buffer_.size() * sizeof(Record))) {
      Keep(*std::move(share));
      buffer_.reserve(kRunRecords);
    } else {  // the next run gets the buffer's memory
      Store(Packed(buffer_), buffer_.size(), nullptr);
      buffer_.clear();
    }
  }

  void SortBuffer() { RecordSorter<Record, Less, Buffer>().Sort(buffer_); }

  // Keeps the buffer as a run.
  void Keep(RunMemory share) {
    const uint64_t count = buffer_.size();
    runs_.push_back({.records = std::exchange(buffer_, {}),
                     .packed = {},
                     .share = std::move(share),
                     .file = nullptr,
                     .offset = 0,
                     .bytes = 0,
                     .count = count,
                     .change = nullptr});
  }

  // Runs of the same kind of records are about as large.
  Bytes Packed(const Buffer& records) {
    Bytes bytes;
    if (records.size() == kRunRecords) bytes.reserve(run_bytes_ + run_bytes_ / 16 + kRunPadding<Record>);
    Packer().Pack(std::span<const Record>(records), bytes);
    run_bytes_ = bytes.size();
    return bytes;
  }

  // Keeps a packed run in memory if there is some left, or else writes it.
  void Store(Bytes bytes, uint64_t count, std::shared_ptr<const Change> change) {
    const uint64_t size = bytes.size();
    if (auto share = RunMemory::Take(bytes.capacity())) {
      bytes.resize(size + kRunPadding<Record>);
      runs_.push_back({.records = {},
                       .packed = std::move(bytes),
                       .share = *std::move(share),
                       .file = nullptr,
                       .offset = 0,
                       .bytes = size,
                       .count = count,
                       .change = std::move(change)});
    } else if (status_.has_value()) {
      const Result<uint64_t> offset = file_->Append(bytes);
      if (offset.has_value())
        AddRun(file_, *offset, size, count, std::move(change));
      else
        status_ = Fail(offset.error());
    }
  }

  Buffer buffer_;
  size_t run_bytes_ = 0;  // of the last run that was packed
  std::vector<Run<Record, Change>> runs_;
  std::shared_ptr<TemporaryFile> file_;
  Status status_;
};

// Reads a run, which must outlive it; not thread-safe.
template <class Record, class Change>
class RunReader {
 public:
  explicit RunReader(const Run<Record, Change>& run) : run_(&run), left_(run.count) {
    if (run.file != nullptr) return;
    next_ = run.packed.data();
    end_ = next_ + run.bytes;
    taken_ = run.bytes;
  }
  RunReader(RunReader&&) noexcept = default;
  RunReader& operator=(RunReader&&) noexcept = default;

  // The next records, valid until the next call; none at the end. Errors: those of reading a file.
  Result<std::span<const Record>> Next() {
    if (!run_->IsPacked()) return std::span<const Record>(run_->records).last(std::exchange(left_, 0));
    records_.resize(std::min<uint64_t>(kRecords, left_));
    for (size_t count = 0; count < records_.size();) {
      TRY(Read());
      const size_t more =
          unpacker_.Unpack(next_, end_, taken_ == run_->bytes, std::span(records_).subspan(count));
      if (more == 0 || next_ > end_) return Fail(ErrorCode::kIo, "a temporary file of gpusonde is damaged");
      count += more;
    }
    left_ -= records_.size();
    if (run_->change != nullptr)
      for (Record& record : records_) (*run_->change)(record);
    return std::span<const Record>(records_);
  }

 private:
  using Unpacker = std::conditional_t<kIsPacked<Record>, RecordUnpacker<Record>, PlainUnpacker<Record>>;
  // Both stay in the first-level cache while one run is read.
  static constexpr size_t kRecords = (size_t{16} << 10) / sizeof(Record);
  static constexpr size_t kBufferBytes = size_t{8} << 10;

  // Reads more of the file when the buffer may not have a whole record.
  Status Read() {
    const auto here = static_cast<size_t>(end_ - next_);
    if (taken_ == run_->bytes || here >= Unpacker::kMaxBytes) return {};
    buffer_.resize(kBufferBytes + kRunPadding<Record>);
    std::copy(next_, end_, buffer_.begin());
    const size_t more = std::min<uint64_t>(kBufferBytes - here, run_->bytes - taken_);
    TRY(CopyBytes(*run_, taken_, std::span(buffer_).subspan(here, more)));
    taken_ += more;
    next_ = buffer_.data();
    end_ = next_ + here + more;
    return {};
  }

  const Run<Record, Change>* run_;
  uint64_t left_;       // records
  uint64_t taken_ = 0;  // bytes of the file that were read
  const std::byte* next_ = nullptr;
  const std::byte* end_ = nullptr;
  Unpacker unpacker_;
  std::vector<std::byte> buffer_;
  std::vector<Record> records_;
};

// Reads the records of all runs in order. The runs must outlive it.
template <class Record, class Less, class Change = NoChange>
class Merged {
 public:
  explicit Merged(std::span<const Run<Record, Change>> runs) {
    cursors_.reserve(runs.size());
    for (const Run<Record, Change>& run : runs)
      cursors_.push_back({.reader = RunReader<Record, Change>(run)});
    for (uint32_t i = 0; i < cursors_.size(); ++i)
      if (Fill(cursors_[i])) heap_.push_back(i);
    if (!status_.has_value()) heap_.clear();
    for (size_t i = heap_.size() / 2; i-- > 0;) SiftDown(i);
    FindLimit();
  }

  // The next record, or null at the end and after a failure. It is valid until the next call.
  const Record* Next() {
    if (heap_.empty()) return nullptr;
    Cursor* first = &cursors_[heap_.front()];
    if (!begun_) {
      begun_ = true;
    } else if (++first->next != first->end || Fill(*first)) {
      // The run with the last record usually has the next one too.
      if (Less::Radix(*first->next) >= limit_) Settle();
    } else {
      heap_.front() = heap_.back();
      heap_.pop_back();
      if (!status_.has_value()) heap_.clear();
      if (heap_.empty()) return nullptr;
      Settle();
    }
    return cursors_[heap_.front()].next;
  }

  // Why Next ended early, if it did.
  const Status& status() const { return status_; }

 private:
  struct Cursor {
    RunReader<Record, Change> reader;
    const Record* next = nullptr;
    const Record* end = nullptr;
  };

  bool Before(size_t a, size_t b) const { return Less()(*cursors_[heap_[a]].next, *cursors_[heap_[b]].next); }

  void SiftDown(size_t at) {
    while (2 * at + 1 < heap_.size()) {
      size_t child = 2 * at + 1;
      if (child + 1 < heap_.size() && Before(child + 1, child)) ++child;
      if (!Before(child, at)) return;
      std::swap(heap_[at], heap_[child]);
      at = child;
    }
  }

  void Settle() {
    SiftDown(0);
    FindLimit();
  }

  // The merge stays in the first run while its next record is below this limit.
  void FindLimit() {
    limit_ = std::numeric_limits<uint64_t>::max();
    for (size_t child = 1; child < std::min<size_t>(3, heap_.size()); ++child)
      limit_ = std::min(limit_, Less::Radix(*cursors_[heap_[child]].next));
  }

  // The run's next records; false if there are none, or reading fails.
  bool Fill(Cursor& cursor) {
    const Result<std::span<const Record>> records = cursor.reader.Next();
    if (!records.has_value()) {
      status_ = std::unexpected(records.error());
      return false;
    }
    cursor.next = records->data();
    cursor.end = cursor.next + records->size();
    return !records->empty();
  }

  std::vector<Cursor> cursors_;
  std::vector<uint32_t> heap_;  // of cursors_, the one with the first record at its top
  uint64_t limit_ = 0;
  bool begun_ = false;
  Status status_;
};

}  // namespace gpusonde::analyze
