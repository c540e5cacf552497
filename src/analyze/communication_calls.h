// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "importers/event.h"

namespace gpusonde::analyze {

// In which calls of NCCL a process launched its kernels, and for which communicator.
class CommunicatorLaunches {
 public:
  // A call that launches.
  struct Window {
    uint32_t thread = 0;
    uint16_t group = 0;  // importers::ProcessGroup; 0 if unknown
    // Of its only operation; unknown if it has several.
    importers::Operation operation = importers::Operation::kUnknown;
    int64_t bytes = 0;  // importers::CommunicationCall::bytes
    int64_t start_ns = 0;
    int64_t end_ns = 0;
  };

  CommunicatorLaunches() = default;
  // Sorted by thread and start; of a thread disjoint.
  explicit CommunicatorLaunches(std::vector<Window> windows) : windows_(std::move(windows)) {}

  // The call within which a thread launched at that time; null if unknown. Takes the logarithm of the number
  // of calls.
  const Window* At(uint32_t thread, int64_t time_ns) const;

 private:
  std::vector<Window> windows_;
};

// The calls of NCCL that a trace has: of each process the first kMaxCalls by start. Which are kept doesn't
// depend on the order in which they are added.
class CommunicationCalls {
 public:
  static constexpr size_t kMaxCalls = 524'288;  // 20 MiB; up to twice as many until Finish

  void Add(std::span<const importers::CommunicationCall> calls);
  void Merge(const CommunicationCalls& other);
  // Reduces to the bound, and sorts.
  void Finish();

  // Requires Finish. Operations launch in their own call, or, in a group, when its outermost call ends; then
  // the communicator is known if all operations of the group have one.
  CommunicatorLaunches LaunchesOf(int64_t process) const;
  // Operations whose communicator the trace doesn't say.
  int64_t without_communicator() const { return without_communicator_; }
  // Calls that were left out.
  int64_t beyond_bound() const { return beyond_bound_; }

  template <class Archive>
  void Transfer(Archive& archive) {
    archive(by_process_);
    archive(without_communicator_);
    archive(beyond_bound_);
  }

 private:
  struct Call {
    importers::CommunicationCall call;

    template <class Archive>
    void Transfer(Archive& archive) {
      archive(call.start_ns);
      archive(call.end_ns);
      archive(call.process);
      archive(call.thread);
      archive(call.group);
      archive(call.kind);
      archive(call.operation);
      archive(call.bytes);
      archive.Require(call.kind <= importers::CommunicationCall::Kind::kGroupEnd &&
                      call.operation <= importers::Operation::kSendReceive && call.bytes >= 0 &&
                      call.bytes <= importers::Message::kMaxBytes);
    }
    auto operator<=>(const Call&) const = default;
  };
  void Reduce(std::vector<Call>& calls);

  std::map<int64_t, std::vector<Call>> by_process_;
  int64_t without_communicator_ = 0;
  int64_t beyond_bound_ = 0;
};

}  // namespace gpusonde::analyze
