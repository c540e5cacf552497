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

#include "analyze/run_memory.h"
#include "analyze/sort_records.h"
#include "analyze/temporary_file.h"
#include "base/result.h"

// External sorting: records are collected in runs, each sorted. Full ones stay in memory while RunMemory has
// some left, and are written to disk after that; all runs are merged when read.
namespace gpusonde::analyze {

// Sorted records in memory or in a part of a file. `Change` is applied to each record when it is read and
// must keep the order.
template <class Record, class Change>
struct Run {
  std::vector<Record, RunAllocator<Record>> memory;
  RunMemory share;                      // of `memory`, if it is a full run
  std::shared_ptr<TemporaryFile> file;  // null: in memory
  uint64_t offset = 0;
  uint64_t count = 0;
  std::shared_ptr<const Change> change;  // null: none
};

struct NoChange {
  template <class Record>
  void operator()(Record&) const {}
  NoChange Then(const NoChange&) const { return {}; }
};

// Copies the records of a run from number `first` on, as many as there is room for. Errors: those of reading
// its file.
template <class Record, class Change>
Status CopyRecords(const Run<Record, Change>& run, uint64_t first, std::span<Record> into) {
  if (run.file == nullptr) {
    std::copy_n(run.memory.begin() + static_cast<ptrdiff_t>(first), into.size(), into.begin());
    return {};
  }
  TRY(run.file->Read(run.offset + first * sizeof(Record), std::as_writable_bytes(into)));
  if (run.change != nullptr)
    for (Record& record : into) (*run.change)(record);
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

  // Writes the buffered records to disk to free memory.
  void Spill() {
    if (!buffer_.empty()) WriteBuffer();
    buffer_ = {};
  }
  size_t buffered_bytes() const { return buffer_.size() * sizeof(Record); }

  // Adds at most kRunRecords records that are already sorted, at any alignment.
  void AddSorted(std::span<const std::byte> bytes) {
    const size_t count = bytes.size() / sizeof(Record);
    Buffer records(count);
    std::memcpy(records.data(), bytes.data(), count * sizeof(Record));
    std::optional<RunMemory> share = RunMemory::Take(count * sizeof(Record));
    if (share.has_value())
      Keep(std::move(records), *std::move(share));
    else if (status_.has_value())
      status_ = Write(records);
  }

  // Adds a run that is already in a file, and to whose records `change` is applied unless it is null.
  void AddRun(const std::shared_ptr<TemporaryFile>& file, uint64_t offset, uint64_t count,
              std::shared_ptr<const Change> change = nullptr) {
    if (count > 0)
      runs_.push_back({.memory = {},
                       .share = {},
                       .file = file,
                       .offset = offset,
                       .count = count,
                       .change = std::move(change)});
  }

  // Moves in the runs of another; `change` is applied to their records when read.
  void Take(SortedRuns&& other, const std::shared_ptr<const Change>& change) {
    other.Sort();
    if (!other.status_.has_value()) status_ = other.status_;
    for (Run<Record, Change>& run : other.runs_) {
      if (run.file == nullptr)
        for (Record& record : run.memory) (*change)(record);
      else
        run.change =
            run.change == nullptr ? change : std::make_shared<const Change>(run.change->Then(*change));
      runs_.push_back(std::move(run));
    }
    other.runs_.clear();
  }

  // Sorts the remaining records.
  void Sort() {
    if (buffer_.empty()) return;
    SortBuffer();
    Keep(std::exchange(buffer_, {}), {});
  }
  // Likewise. Errors: those of writing any run.
  Status Finish() {
    Sort();
    return status_;
  }

  std::span<const Run<Record, Change>> runs() const { return runs_; }
  // The number of records in all runs.
  uint64_t count() const {
    uint64_t all = 0;
    for (const auto& run : runs_) all += run.count;
    return all;
  }

 private:
  using Buffer = std::vector<Record, RunAllocator<Record>>;

  // A small trace needs little memory, a larger one a whole run's, which isn't moved then.
  void MakeRoom() {
    if (buffer_.size() >= kRunRecords) return EndRun();
    const bool is_small = buffer_.size() < kRunRecords / 16;
    buffer_.reserve(is_small ? std::max<size_t>(64, 2 * buffer_.size()) : kRunRecords);
  }

  void EndRun() {
    std::optional<RunMemory> share = RunMemory::Take(buffer_.size() * sizeof(Record));
    if (!share.has_value()) return WriteBuffer();
    SortBuffer();
    Keep(std::exchange(buffer_, {}), *std::move(share));
    buffer_.reserve(kRunRecords);
  }

  // Keeps the buffer's memory for the next run.
  void WriteBuffer() {
    SortBuffer();
    if (status_.has_value()) status_ = Write(buffer_);
    buffer_.clear();
  }

  void SortBuffer() { RecordSorter<Record, Less, Buffer>().Sort(buffer_); }

  // Writes sorted records as a run.
  Status Write(const Buffer& records) {
    ASSIGN_OR_RETURN(const uint64_t offset, file_->Append(std::as_bytes(std::span(records))));
    runs_.push_back({.memory = {},
                     .share = {},
                     .file = file_,
                     .offset = offset,
                     .count = records.size(),
                     .change = nullptr});
    return {};
  }

  // Keeps sorted records in memory as a run.
  void Keep(Buffer records, RunMemory share) {
    const uint64_t count = records.size();
    runs_.push_back({.memory = std::move(records),
                     .share = std::move(share),
                     .file = nullptr,
                     .offset = 0,
                     .count = count,
                     .change = nullptr});
  }

  Buffer buffer_;
  std::vector<Run<Record, Change>> runs_;
  std::shared_ptr<TemporaryFile> file_;
  Status status_;
};

// Reads the records of all runs in order. The runs must outlive it.
template <class Record, class Less, class Change = NoChange>
class Merged {
 public:
  explicit Merged(std::span<const Run<Record, Change>> runs) {
    for (const Run<Record, Change>& run : runs) cursors_.push_back({.run = &run});
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
  static constexpr size_t kBufferRecords = (size_t{32} << 10) / sizeof(Record);

  struct Cursor {
    const Run<Record, Change>* run = nullptr;
    uint64_t taken = 0;  // read, or on their way in the buffer
    std::vector<Record> buffer = {};
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
    const Run<Record, Change>& run = *cursor.run;
    if (cursor.taken == run.count) return false;
    if (run.file == nullptr) {
      cursor.next = run.memory.data();
      cursor.end = cursor.next + run.count;
      cursor.taken = run.count;
      return true;
    }
    cursor.buffer.resize(std::min<uint64_t>(kBufferRecords, run.count - cursor.taken));
    Status done = CopyRecords(run, cursor.taken, std::span(cursor.buffer));
    if (!done.has_value()) {
      status_ = std::move(done);
      return false;
    }
    cursor.taken += cursor.buffer.size();
    cursor.next = cursor.buffer.data();
    cursor.end = cursor.next + cursor.buffer.size();
    return true;
  }

  std::vector<Cursor> cursors_;
  std::vector<uint32_t> heap_;  // of cursors_, the one with the first record at its top
  uint64_t limit_ = 0;
  bool begun_ = false;
  Status status_;
};

}  // namespace gpusonde::analyze
