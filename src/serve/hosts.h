// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/id128.h"
#include "base/result.h"
#include "serve/pace.h"
#include "store/live/live_store.h"
#include "usage/hours.h"

namespace gpusonde::serve {

// A monotonic time that is longer ago than any other; differences to it don't overflow.
inline constexpr int64_t kNeverNs = std::numeric_limits<int64_t>::min() / 2;

// One host that sends its rows: a live store, opened when it is first needed, and what is known of its agent.
// Thread-safe.
class Host {
 public:
  struct Options {
    std::string name;
    std::string folder;  // of its store
    int64_t min_free_bytes = 0;
  };
  explicit Host(Options options);

  const std::string& name() const { return options_.name; }
  const std::string& folder() const { return options_.folder; }

  // Errors: those of LiveStore::Open; the next call tries again.
  Result<store::LiveStore*> Store();

  // Claims the host for the agent with this spool. Errors: kUnavailable while another one, seen within the
  // last two minutes, uses the name: two machines would be mixed up.
  Status Claim(const Id128& spool, int64_t now_ns);

  // When rows last arrived, ns since the epoch.
  int64_t last_seen_ns() const { return last_seen_ns_; }
  void SetLastSeen(int64_t epoch_ns);

  // Whether no rows have arrived for longer than an agent ever pauses, by the monotonic clock: the wall clock
  // may have been set since.
  bool IsSilent(int64_t now_ns) const;

  // How old the newest sample was when it arrived, ns: how long it waited in the agent's spool. Negative if
  // the agent's clock is ahead; nullopt before the first sample.
  std::optional<int64_t> spool_age_ns() const;
  void SetSpoolAge(int64_t age_ns) { spool_age_ns_ = age_ns; }

  // From when on rows have changed its usage since the last call (usage::ChangedFrom of the rows).
  int64_t TakeUsageChange() { return usage_changed_from_ns_.exchange(usage::kNoneOfIt); }
  void AddUsageChange(int64_t from_ns);

  // Whether a client looks at the host's pages: its agent then sends every second.
  bool IsWatched(int64_t now_ns) const;
  void SetWatched(int64_t now_ns) { watched_ns_ = now_ns; }

  // Bytes of its store's files.
  int64_t Bytes() const;

  // Whether its store's files are open, and what they take of the memory (LiveStore::MemoryBytes).
  bool IsOpen() const;
  int64_t MemoryBytes() const;
  // Closes its store's files until they are needed (LiveStore::CloseFiles).
  bool CloseFiles() const;

  // Deletes old days (LiveStore::Retain), unless nothing has come since the last time. Returns how many.
  Result<int> Retain(
      int max_days, int64_t max_bytes, const std::function<bool()>& is_stopping = [] { return false; });

 private:
  store::LiveStore* OpenedStore() const;  // null if it isn't

  const Options options_;
  std::atomic<int64_t> last_seen_ns_ = 0;
  std::atomic<int64_t> seen_ns_;                                             // the same, monotonic
  std::atomic<int64_t> watched_ns_;                                          // monotonic
  std::atomic<int64_t> spool_age_ns_ = std::numeric_limits<int64_t>::min();  // the least: unknown
  std::atomic<int64_t> usage_changed_from_ns_ = usage::kNoneOfIt;
  mutable std::mutex mutex_;  // guards what follows
  std::unique_ptr<store::LiveStore> store_;
  Id128 spool_;
  int64_t claimed_ns_ = 0;   // monotonic
  int64_t retained_ns_ = 0;  // last_seen_ns of the last Retain
};

// All hosts of a server, a folder each in STATE/hosts. Thread-safe.
class Hosts {
 public:
  struct Options {
    std::string folder;
    int64_t min_free_bytes = 0;  // nothing is stored while the file system has less than this left
    size_t max_hosts = 256;
    int max_days = 7;
    int64_t max_bytes = int64_t{10'000'000'000};  // of each host
  };

  // Creates the folder (mode 0700; its parent must exist) or finds the hosts in it. Errors: kUnavailable when
  // another server has it open; kPermissionDenied, kIo.
  static Result<std::unique_ptr<Hosts>> Open(Options options);

  // Errors: kNotFound.
  Result<std::shared_ptr<Host>> Find(const std::string& name) const;

  // The host, which is made if it is new. Errors: kInvalidArgument for a name that can't be one; kOutOfSpace
  // beyond max_hosts; kUnavailable while Retain deletes an old one of the name.
  Result<std::shared_ptr<Host>> FindOrMake(const std::string& name);

  // By name.
  std::vector<std::shared_ptr<Host>> All() const;

  // Deletes old days of each host (LiveStore::Retain), and hosts that have sent nothing for max_days if the
  // days recorded by others say so as well: the clock of a server may be wrong. Failures are logged. Ends
  // early, between two days or hosts, once `is_stopping`: opening and deleting many files takes a while.
  void Retain(int64_t epoch_now_ns, const std::function<bool()>& is_stopping = [] { return false; });

  // Closes the stores of silent hosts. While the process has more than `max_bytes` of memory, also closes
  // those that take most of it, beginning with hosts that no client looks at. Returns how many were closed.
  int LimitMemory(int64_t max_bytes);

  // Hosts that aren't silent.
  size_t Agents() const;

  // How long agents wait between requests.
  Pace& pace() { return pace_; }

  // Whether there is room on the disk. Errors: kOutOfSpace.
  Status CheckRoom() const;

 private:
  Hosts(Options options, Fd lock);
  std::shared_ptr<Host> Make(const std::string& name) const;
  std::set<std::string> NamesOfOldHosts() const;
  bool IsPastRetention(const Host& host, int64_t epoch_now_ns) const;
  std::vector<std::shared_ptr<Host>> TakeOldHosts(int64_t epoch_now_ns);
  void Delete(std::shared_ptr<Host> host);

  const Options options_;
  Fd lock_;
  Pace pace_;
  mutable std::mutex mutex_;  // guards what follows
  std::map<std::string, std::shared_ptr<Host>> hosts_;
  std::set<std::string> being_deleted_;  // names
};

}  // namespace gpusonde::serve
