// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "agent/device_table.h"
#include "agent/kernel_packer.h"
#include "agent/process_table.h"
#include "agent/rows.h"
#include "base/id128.h"
#include "base/saturated.h"
#include "model/drops.h"
#include "sources/cupti/event.h"

namespace gpusonde::agent {

// Turns the GPU work that processes report into rows. Single records may get lost on their way, but the
// totals of a session don't: the part of a total that no record showed becomes rows of kernel_windows without
// a stack. Not thread-safe.
class GpuRows {
 public:
  struct Options {
    Id128 source;
    std::string host;
    int64_t epoch_offset_ns = 0;
    bool pack_kernels = false;  // else each has a row of its own
    std::shared_ptr<DeviceTable> devices = std::make_shared<DeviceTable>();
  };
  // `rows` and `drops` must outlive it.
  GpuRows(Options options, Rows& rows, model::DropCounts& drops);

  // `stack` is that of the call or graph node, if one was captured.
  void Ingest(const cupti::Event& event, const Id128& process, std::optional<Id128> stack);

  // Writes kernels that were ingested but not written yet.
  void Flush() { packer_.Write(rows_); }

  // Call when the process has ended and all that it reported was ingested.
  void Finish(const Id128& process);
  void FinishAll();

  // Writes devices and sessions again from now on, as a new store needs them.
  void Rewrite();

 private:
  // A session keeps totals by kind of work, device and kernel name (or kind of copy). Lookup works with a
  // string_view, as it happens for each kernel.
  using TotalKey = std::tuple<cupti::Total::Of, uint32_t, std::string>;
  using TotalView = std::tuple<cupti::Total::Of, uint32_t, std::string_view>;
  struct TotalHash {
    using is_transparent = void;
    size_t operator()(const TotalView& key) const {
      return std::hash<std::string_view>()(std::get<2>(key)) + size_t{31} * std::get<1>(key) +
             static_cast<size_t>(std::get<0>(key));
    }
  };
  struct Sum {
    int64_t count = 0;
    int64_t total_ns = 0;
  };
  // A sampled call: with sampling probability 1/n it stands for n calls.
  struct Launch {
    uint32_t correlation = 0;
    double stands_for = 1;
  };
  // Enough for the calls of 250 ms, the flush interval of a program; about 100 calls per second and thread
  // are sampled.
  static constexpr size_t kMaxLaunches = 4096;
  // Numbers of devices and names come from an untrusted process. With eight devices and 5,000 kernels whose
  // names have 200 characters, the sums take 25 MB.
  static constexpr size_t kMaxDevices = 64;
  static constexpr size_t kMaxSumBytes = size_t{32} << 20;       // of one session
  static constexpr size_t kMaxSumBytesInAll = size_t{96} << 20;  // of all
  using SeenSums = std::unordered_map<TotalKey, Sum, TotalHash, std::equal_to<>>;
  struct Session {
    model::GpuSession row;
    std::map<uint32_t, Id128> devices;          // by ordinal
    std::map<TotalKey, Sum> totals;             // the library's totals, without work that had no times
    std::map<TotalKey, Sum> earlier;            // the part of the totals from before we joined the session
    SeenSums seen;                              // sums of records that became rows
    size_t sum_bytes = 0;                       // of these three
    SeenSums::value_type* last_seen = nullptr;  // that of the record before: work often repeats
    std::vector<Launch> launches;               // sampled calls whose work may not have been reported yet
    std::optional<uint32_t> reported;           // the newest correlation id of a record
    int64_t first_ns = 0;  // epoch; the start of the first activity, 0 before there is one
    int64_t last_ns = 0;   // epoch; the end of the last activity
  };

  Session& SessionOf(const Id128& process, uint32_t session);
  Id128 DeviceOf(const Session& session, uint32_t ordinal) const;
  // Counts the bytes of one more sum. False, and counted as dropped, if there are too many.
  bool AddSumBytes(Session& session, std::string_view name);
  // Null, and counted as dropped, if there are too many sums.
  Sum* SeenOf(Session& session, const TotalView& key);
  // Whether CUPTI recorded times. Adds the activity to the sums if so, and counts it as lost if not; also if
  // there are too many sums.
  bool Timed(Session& session, const cupti::Activity& activity, cupti::Total::Of of, std::string_view name);
  void WriteMissing(Session& session);
  void CountUnreported(const Session& session);
  static bool IsReported(const Session& session, const Launch& launch);
  // Times of an untrusted process may have any value, hence saturated.
  int64_t Epoch(int64_t monotonic_ns) const { return AddSaturated(monotonic_ns, options_.epoch_offset_ns); }
  // 0: not known.
  std::optional<int64_t> EpochIfKnown(int64_t monotonic_ns) const {
    return monotonic_ns == 0 ? std::nullopt : std::optional(Epoch(monotonic_ns));
  }

  void Write(const cupti::SessionBegin& begin, Session& session);
  void Write(const cupti::SessionEnd& end, Session& session);
  void Write(const cupti::Device& device, Session& session);
  void Write(const cupti::Kernel& kernel, Session& session);
  void Write(const cupti::Memcpy& copy, Session& session);
  void Write(const cupti::Memset& set, Session& session);
  void Write(const cupti::Sync& sync, Session& session);
  void Write(const cupti::Total& total, Session& session);
  void Write(const cupti::Foreign& foreign, Session& session);
  void Write(const cupti::Overhead& overhead, Session& session);
  void WriteCall(const cupti::Event& event, const cupti::Call& call, Session& session,
                 std::optional<Id128> stack);
  void WriteNode(const cupti::GraphNode& node, Session& session, std::optional<Id128> stack);
  void WriteRange(const cupti::Event& event, const cupti::Range& range, Session& session);
  void Write(const cupti::Communicator& communicator, Session& session);
  void WriteCollective(const cupti::Event& event, const cupti::Collective& collective, Session& session);

  Options options_;
  Rows& rows_;
  model::DropCounts& drops_;
  KernelPacker packer_;
  int32_t session_number_ = 0;                   // of the event that is being written
  std::unordered_map<Id128, Session> sessions_;  // the current one, by process
  size_t sum_bytes_ = 0;                         // of all sessions
};

}  // namespace gpusonde::agent
