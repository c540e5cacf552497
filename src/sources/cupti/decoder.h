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

// Decodes the inject library's batches (wire/gpu_event.h) into events. The batches come from untrusted
// processes: whatever does not parse is counted as kGpuMalformed and discarded, and the names and processes
// kept are bounded. Not thread-safe.
//
// Records refer to names that were sent earlier in their session. If the decoder joins a session late, or
// names were lost in transit, it holds the records until a snapshot has delivered the names.
class Decoder {
 public:
  // Memory for the names of all processes together, their containers included.
  static constexpr size_t kMaxNameBytesInAll = size_t{256} << 20;

  Decoder() = default;
  // `snapshots`: the caller can request snapshots from processes.
  explicit Decoder(bool snapshots, size_t max_name_bytes_in_all = kMaxNameBytesInAll)
      : snapshots_(snapshots), max_name_bytes_in_all_(max_name_bytes_in_all) {}

  // The sender of a batch, according to the kernel.
  struct Origin {
    int32_t pid = 0;
    int32_t tid = 0;  // 0: not known; the tid in the record is used
    ebpf::RawStack stack;
    bool stack_taken = false;
  };
  using Visit = std::function<void(const Event&)>;

  // Decodes one batch. Skips a batch whose sequence number was received before, so that a process can be
  // received through both probes and socket.
  void Decode(const Origin& origin, std::span<const std::byte> batch, const Visit& visit);

  // How many processes have sent batches and are not forgotten.
  size_t processes() const { return processes_.size(); }
  // The processes whose records are held.
  std::vector<int32_t> Holding() const;
  // Decodes all held records with the names that are known, and holds no more records of these sessions.
  void Release(const Visit& visit);

  // Forgets those of these processes that have ended, according to `runs`: no snapshot will come from them.
  void ForgetEnded(std::span<const int32_t> pids, const std::function<bool(int32_t pid)>& runs);

  // Forgets a process. Counts its lost messages, and those held, as dropped.
  void Forget(int32_t pid);

  // Returns and resets the drop counts. Messages lost in transit are counted one call late.
  model::DropCounts DrainDrops();

 private:
  static constexpr size_t kMaxProcesses = 4096;
  static constexpr uint32_t kMaxNameId = 65535;
  static constexpr size_t kMaxNameBytes = size_t{32} << 20;  // the same of one process
  // Per process: 10,000 kernels a second make 1 MB a second, and a snapshot arrives within 250 ms.
  static constexpr size_t kMaxHeldBytes = size_t{4} << 20;
  static constexpr size_t kMaxHeldBytesInAll = size_t{64} << 20;

  // The batches of a channel that were received: a bit for each of the newest kWindow, and the total count.
  struct Received {
    static constexpr uint64_t kWindow = 4096;
    bool Mark(uint64_t sequence);  // false: it was received before
    // How many more are known to be lost than at the last call. Unless `final`, a batch counts as lost only
    // if it was missing at the last call already, as it may be out of order.
    int64_t CountNewlyLost(bool final);

    bool any = false;
    uint64_t first = 0;
    uint64_t last = 0;
    uint64_t count = 0;
    uint64_t reported = 0;
    uint64_t missing = 0;  // at the last CountNewlyLost
    std::vector<bool> recent;
  };

  struct Process {
    uint64_t instance = 0;          // of its library
    uint32_t earlier_sessions = 0;  // before the last exec; session numbers continue after them
    uint32_t session = 0;
    std::vector<std::string> names;  // of the session, by id
    size_t name_bytes = 0;
    enum class Names : uint8_t { kMissing, kComplete, kGivenUp } state = Names::kMissing;
    std::vector<std::vector<std::byte>> held;
    size_t held_bytes = 0;
    std::optional<uint64_t> next_of_snapshot;  // the next sequence number, while a snapshot is being read
    Received received[GPUSONDE_GPU_CHANNELS];
    uint64_t drops[GPUSONDE_GPU_DROP_REASONS] = {};
  };

  Process* FindProcess(int32_t pid);
  void BeginInstance(Process& process, uint64_t instance);
  void CountLostOnTheWay(Process& process);
  void BeginSession(int32_t pid, Process& process, uint32_t session, const Visit& visit);
  // Holds the batch if it has to wait for names; false if it can be decoded now.
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
  void ForgetNames(Process& process);
  void AddLibraryDrops(Process& process, const gpusonde_gpu_drops& drops);
  void CountMalformed() { drops_.Add(model::DropReason::kGpuMalformed); }

  bool snapshots_ = false;
  size_t max_name_bytes_in_all_ = kMaxNameBytesInAll;
  size_t held_bytes_ = 0;  // of all processes
  size_t name_bytes_ = 0;  // likewise
  std::unordered_map<int32_t, Process> processes_;
  model::DropCounts drops_;
};

}  // namespace gpusonde::cupti
