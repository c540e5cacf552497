// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "model/drops.h"
#include "sources/cupti/event.h"
#include "wire/gpu_event.h"

namespace gpusonde::cupti {

// From the inject library's batches (wire/gpu_event.h) to events. Every byte comes from a stranger's process:
// what does not parse is counted as kGpuMalformed and nothing of it is used; names and processes are kept up
// to bounds. Not thread-safe.
class Decoder {
 public:
  // Where a batch came from, as the kernel says.
  struct Origin {
    int32_t pid = 0;
    int32_t tid = 0;  // 0: not known, and the process's own word is taken
    ebpf::RawStack stack;
    bool stack_taken = false;
  };
  using Visit = std::function<void(const Event&)>;

  // Decodes one batch. One that came before (by its number) is passed over, so that a process may be heard in
  // two ways.
  void Decode(const Origin& origin, std::span<const std::byte> batch, const Visit& visit);

  // Forgets a process: its names, its counts. What it lost is counted now.
  void Forget(int32_t pid);

  // What was lost or incomplete since the last call; losses on the way are noticed one call late.
  model::DropCounts TakeDrops();

 private:
  static constexpr size_t kMaxProcesses = 4096;
  static constexpr uint32_t kMaxNameId = 65535;
  static constexpr size_t kMaxNameBytes = size_t{32} << 20;  // of one process

  // Which batches of a channel have come: the newest kWindow one by one, and how many of all.
  struct Received {
    static constexpr uint64_t kWindow = 4096;
    bool Mark(uint64_t sequence);  // false: it came before
    int64_t TakeLost(bool final);

    bool any = false;
    uint64_t first = 0;
    uint64_t last = 0;
    uint64_t count = 0;
    uint64_t reported = 0;
    uint64_t seen_lost = 0;  // at the last TakeLost; what comes out of order is not lost
    std::vector<bool> recent;
  };

  struct Process {
    uint64_t instance = 0;          // of the library in it
    uint32_t earlier_sessions = 0;  // of instances before: sessions count on through an exec
    uint32_t session = 0;
    std::vector<std::string> names;  // of the session, by id
    size_t name_bytes = 0;
    Received received[GPUSONDE_GPU_CHANNELS];
    uint64_t drops[GPUSONDE_GPU_DROP_REASONS] = {};
  };

  class Records;

  Process* FindProcess(int32_t pid);
  void BeginInstance(Process& process, uint64_t instance);
  void CountLostOnTheWay(Process& process);
  void DecodeRecord(const gpusonde_gpu_record& record, std::span<const std::byte> bytes, Process& process,
                    Event& event, const Visit& visit);
  std::string_view NameOf(const Process& process, uint32_t session, uint32_t id);
  void KeepName(Process& process, uint32_t id, std::string_view text);
  void TakeLibraryDrops(Process& process, const gpusonde_gpu_drops& drops);
  void CountMalformed() { drops_.Add(model::DropReason::kGpuMalformed); }

  std::unordered_map<int32_t, Process> processes_;
  model::DropCounts drops_;
};

}  // namespace gpusonde::cupti
