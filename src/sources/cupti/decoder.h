// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
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
//
// Records refer to names that were reported earlier in their session. Where the session is joined late, or
// names were lost on the way, its records are held until a snapshot has named them.
class Decoder {
 public:
  Decoder() = default;
  // `snapshots`: processes can be asked for one.
  explicit Decoder(bool snapshots) : snapshots_(snapshots) {}

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

  // The processes whose records are held.
  std::vector<int32_t> Holding() const;
  // Decodes what is held, with the names that are known. No more is held of these sessions.
  void Release(const Visit& visit);

  // Forgets a process: its names, its counts. What it lost is counted now, with what is held.
  void Forget(int32_t pid);

  // What was lost or incomplete since the last call; losses on the way are noticed one call late.
  model::DropCounts TakeDrops();

 private:
  static constexpr size_t kMaxProcesses = 4096;
  static constexpr uint32_t kMaxNameId = 65535;
  static constexpr size_t kMaxNameBytes = size_t{32} << 20;  // of one process
  // Of one process: a second of 10,000 kernels a second is 1 MB, and a snapshot comes within 250 ms.
  static constexpr size_t kMaxHeldBytes = size_t{4} << 20;
  static constexpr size_t kMaxHeldBytesOfAll = size_t{64} << 20;

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
    enum class Names : uint8_t { kMissing, kComplete, kGivenUp } state = Names::kMissing;
    std::vector<std::vector<std::byte>> held;
    size_t held_bytes = 0;
    std::optional<uint64_t> next_of_snapshot;  // the number of its next batch, while it is being read
    Received received[GPUSONDE_GPU_CHANNELS];
    uint64_t drops[GPUSONDE_GPU_DROP_REASONS] = {};
  };

  class Records;

  Process* FindProcess(int32_t pid);
  void BeginInstance(Process& process, uint64_t instance);
  void CountLostOnTheWay(Process& process);
  void BeginSession(int32_t pid, Process& process, uint32_t session, const Visit& visit);
  // Whether it waits for names.
  bool Hold(Process& process, const gpusonde_gpu_batch& header, std::span<const std::byte> batch);
  void DecodeSnapshot(int32_t pid, Process& process, const gpusonde_gpu_batch& header,
                      std::span<const std::byte> batch, const Visit& visit);
  void ReleaseHeld(int32_t pid, Process& process, const Visit& visit);
  void DropHeld(Process& process);
  void DecodeRecords(const Origin& origin, Process& process, uint32_t session,
                     std::span<const std::byte> records, const Visit& visit);
  void DecodeRecord(const gpusonde_gpu_record& record, std::span<const std::byte> bytes, Process& process,
                    Event& event, const Visit& visit);
  static std::string_view NameOf(const Process& process, uint32_t session, uint32_t id);
  void KeepName(Process& process, uint32_t id, std::string_view text);
  void TakeLibraryDrops(Process& process, const gpusonde_gpu_drops& drops);
  void CountMalformed() { drops_.Add(model::DropReason::kGpuMalformed); }

  bool snapshots_ = false;
  size_t held_bytes_ = 0;  // of all processes
  std::unordered_map<int32_t, Process> processes_;
  model::DropCounts drops_;
};

}  // namespace gpusonde::cupti
