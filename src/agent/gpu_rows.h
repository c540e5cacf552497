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

// From what processes tell of their GPU work to rows. Single records may get lost on their way, the totals of
// a session don't: what they hold and no record showed becomes rows of kernel_windows without a stack. Not
// thread-safe.
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

  // `stack` is the one of a call or graph node, where it was taken.
  void Take(const cupti::Event& event, const Id128& process, std::optional<Id128> stack);

  // Writes what was taken and is no row yet.
  void Flush() { packer_.Write(rows_); }

  // The process has ended, and all that it reported was taken.
  void Settle(const Id128& process);
  void SettleAll();

  // Writes devices and sessions again from now on, as into a new store.
  void Rewrite();

 private:
  // What totals are kept of, within a session: kind of work, device, kernel's name or kind of copy. Found by
  // a view of the name too: there is one search for each kernel.
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
  // A call that was chosen with a probability, and so stands for so many.
  struct Launch {
    uint32_t correlation = 0;
    double stands_for = 1;
  };
  // Enough for the calls of 250 ms, in which a program reports; the coin chooses 100 a second and thread.
  static constexpr size_t kMaxLaunches = 4096;
  using SeenSums = std::unordered_map<TotalKey, Sum, TotalHash, std::equal_to<>>;
  struct Session {
    model::GpuSession row;
    std::map<uint32_t, Id128> devices;  // by ordinal
    std::map<TotalKey, Sum> told;       // the library's totals, without what had no times
    std::map<TotalKey, Sum> earlier;    // of the library's totals, what was before we joined the session
    SeenSums seen;                      // records that became rows
    std::vector<Launch> launches;       // whose work may not have been reported yet
    std::optional<uint32_t> reported;   // the newest correlation id of a record
    int64_t first_ns = 0;               // epoch; the start of the first activity, 0 before there is one
    int64_t last_ns = 0;                // epoch; the end of the last activity
  };

  Session& SessionOf(const Id128& process, uint32_t session);
  Id128 DeviceOf(const Session& session, uint32_t ordinal) const;
  // Whether CUPTI gave it times; keeps count of it if so, and counts it as lost if not.
  bool Timed(Session& session, const cupti::Activity& activity, cupti::Total::Of of, std::string_view name);
  void WriteMissing(Session& session);
  void CountUnreported(const Session& session);
  static bool IsReported(const Session& session, const Launch& launch);
  // Strangers' times may be any.
  int64_t Epoch(int64_t monotonic_ns) const { return AddSaturated(monotonic_ns, options_.epoch_offset_ns); }

  void Write(const cupti::SessionBegin& begin, Session& session);
  void Write(const cupti::SessionEnd& end, Session& session);
  void Write(const cupti::Device& device, Session& session);
  void Write(const cupti::Kernel& kernel, Session& session);
  void Write(const cupti::Memcpy& copy, Session& session);
  void Write(const cupti::Memset& set, Session& session);
  void Write(const cupti::Sync& sync, Session& session);
  void Write(const cupti::Total& total, Session& session);
  void Write(const cupti::Foreign& foreign, Session& session);
  void WriteCall(const cupti::Event& event, const cupti::Call& call, Session& session,
                 std::optional<Id128> stack);
  void WriteNode(const cupti::GraphNode& node, Session& session, std::optional<Id128> stack);
  void WriteRange(const cupti::Event& event, const cupti::Range& range, Session& session);

  Options options_;
  Rows& rows_;
  model::DropCounts& drops_;
  KernelPacker packer_;
  int32_t session_number_ = 0;                   // of the event that is being written
  std::unordered_map<Id128, Session> sessions_;  // the present one, by process
};

}  // namespace gpusonde::agent
