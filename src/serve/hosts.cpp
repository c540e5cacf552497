// SPDX-License-Identifier: Apache-2.0
#include "serve/hosts.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <limits>
#include <set>
#include <system_error>
#include <tuple>
#include <utility>

#include "base/disk.h"
#include "base/heap.h"
#include "base/log.h"
#include "base/time.h"
#include "base/usable_cpus.h"
#include "spool/host_name.h"

namespace gpusonde::serve {
namespace {

namespace fs = std::filesystem;

// Agents pause for at most a minute, at the server's request (Pace) or after failures, and a request may take
// a while.
constexpr int64_t kClaimNs = 120 * kNanosPerSecond;
constexpr int64_t kSilentNs = 150 * kNanosPerSecond;
// A page that is open asks every 2 s.
constexpr int64_t kWatchNs = 15 * kNanosPerSecond;

// Calls visit(size, changed) for every file of the folder; `changed` is in ns since the epoch.
template <class Visit>
void ForEachFile(const std::string& folder, const Visit& visit) {
  std::error_code failed;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, failed)) {
    std::error_code gone;
    if (!entry.is_regular_file(gone)) continue;
    const auto size = entry.file_size(gone);
    const auto changed = entry.last_write_time(gone);
    if (!gone)
      visit(static_cast<int64_t>(size),
            std::chrono::file_clock::to_sys(changed).time_since_epoch() / std::chrono::nanoseconds(1));
  }
}

}  // namespace

Host::Host(Options options) : options_(std::move(options)), watched_ns_(kNeverNs) {
  int64_t newest_ns = 0;
  ForEachFile(options_.folder,
              [&newest_ns](int64_t, int64_t changed_ns) { newest_ns = std::max(newest_ns, changed_ns); });
  SetLastSeen(newest_ns);
}

void Host::SetLastSeen(int64_t epoch_ns) {
  last_seen_ns_ = epoch_ns;
  seen_ns_ = MonotonicNow() - std::max<int64_t>(EpochNow() - epoch_ns, 0);
}

Result<store::LiveStore*> Host::Store() {
  const std::scoped_lock lock(mutex_);
  if (store_ == nullptr) {
    ASSIGN_OR_RETURN(
        store_, store::LiveStore::Open(options_.folder,
                                       {.min_free_bytes = options_.min_free_bytes, .one_of_many = true}));
  }
  return store_.get();
}

Status Host::Claim(const Id128& spool, int64_t now_ns) {
  const std::scoped_lock lock(mutex_);
  if (claimed_ns_ != 0 && spool_ != spool && now_ns - claimed_ns_ < kClaimNs)
    return Fail(
        ErrorCode::kUnavailable,
        fmt::format("another agent sends as host {}; give one of them another name with --host, or wait "
                    "two minutes if it was set up anew",
                    options_.name));
  spool_ = spool;
  claimed_ns_ = now_ns;
  return {};
}

bool Host::IsSilent(int64_t now_ns) const { return now_ns - seen_ns_ > kSilentNs; }

std::optional<int64_t> Host::spool_age_ns() const {
  const int64_t age_ns = spool_age_ns_;
  return age_ns == std::numeric_limits<int64_t>::min() ? std::optional<int64_t>() : age_ns;
}

void Host::AddUsageChange(int64_t from_ns) {
  int64_t known_ns = usage_changed_from_ns_;
  while (from_ns < known_ns && !usage_changed_from_ns_.compare_exchange_weak(known_ns, from_ns)) {
  }
}

bool Host::IsWatched(int64_t now_ns) const { return now_ns - watched_ns_ < kWatchNs; }

int64_t Host::Bytes() const {
  int64_t bytes = 0;
  ForEachFile(options_.folder, [&bytes](int64_t size, int64_t) { bytes += size; });
  return bytes;
}

store::LiveStore* Host::OpenedStore() const {
  const std::scoped_lock lock(mutex_);
  return store_.get();
}

bool Host::IsOpen() const {
  const store::LiveStore* const store = OpenedStore();
  return store != nullptr && store->IsOpen();
}

int64_t Host::MemoryBytes() const {
  store::LiveStore* const store = OpenedStore();
  return store == nullptr ? 0 : store->MemoryBytes();
}

bool Host::CloseFiles() const {
  store::LiveStore* const store = OpenedStore();
  return store == nullptr || store->CloseFiles();
}

Result<int> Host::Retain(int max_days, int64_t max_bytes, const std::function<bool()>& is_stopping) {
  const int64_t seen_ns = last_seen_ns_;
  {
    const std::scoped_lock lock(mutex_);
    if (retained_ns_ == seen_ns && seen_ns != 0) return 0;
  }
  const bool was_open = IsOpen();
  ASSIGN_OR_RETURN(store::LiveStore* const store, Store());
  const Result<int> gone = store->Retain(max_days, max_bytes, is_stopping);
  // After a start all hosts are opened here, one after the other.
  if (!was_open) store->CloseFiles();
  if (!gone.has_value() || is_stopping()) return gone;
  const std::scoped_lock lock(mutex_);
  retained_ns_ = seen_ns;
  return gone;
}

Hosts::Hosts(Options options, Fd lock)
    : options_(std::move(options)), lock_(std::move(lock)), pace_(UsableCpus()) {}

Result<std::unique_ptr<Hosts>> Hosts::Open(Options options) {
  ASSIGN_OR_RETURN(Fd lock, LockFolder(options.folder));
  std::unique_ptr<Hosts> hosts(new Hosts(std::move(options), std::move(lock)));
  std::error_code failed;
  for (const fs::directory_entry& entry : fs::directory_iterator(hosts->options_.folder, failed)) {
    const std::string name = entry.path().filename();
    if (entry.is_directory() && spool::CheckHostName(name).has_value())
      hosts->hosts_[name] = hosts->Make(name);
  }
  if (failed) return Fail(ErrnoError(failed.value(), "list " + hosts->options_.folder));
  return hosts;
}

std::shared_ptr<Host> Hosts::Make(const std::string& name) const {
  return std::make_shared<Host>(Host::Options{
      .name = name, .folder = options_.folder + "/" + name, .min_free_bytes = options_.min_free_bytes});
}

Result<std::shared_ptr<Host>> Hosts::Find(const std::string& name) const {
  const std::scoped_lock lock(mutex_);
  const auto found = hosts_.find(name);
  if (found == hosts_.end())
    return Fail(ErrorCode::kNotFound,
                fmt::format("no host '{}' has sent anything; /api/v1/hosts lists all", name));
  return found->second;
}

Result<std::shared_ptr<Host>> Hosts::FindOrMake(const std::string& name) {
  TRY(spool::CheckHostName(name));
  const std::scoped_lock lock(mutex_);
  const auto found = hosts_.find(name);
  if (found != hosts_.end()) return found->second;
  if (being_deleted_.contains(name))
    return Fail(ErrorCode::kUnavailable,
                fmt::format("the old data of {} is being deleted; it can send again in a moment", name));
  if (hosts_.size() >= options_.max_hosts)
    return Fail(
        ErrorCode::kOutOfSpace,
        fmt::format("this server has {} hosts already, its limit; start it with a larger --max-hosts, "
                    "or stop it and delete the folder of a host that is gone in {}",
                    hosts_.size(), options_.folder));
  return hosts_[name] = Make(name);
}

std::vector<std::shared_ptr<Host>> Hosts::All() const {
  const std::scoped_lock lock(mutex_);
  std::vector<std::shared_ptr<Host>> all;
  for (const auto& [name, host] : hosts_) all.push_back(host);
  return all;
}

// Hosts whose newest day is max_days older than the newest one that any host has recorded, and those without
// days.
std::set<std::string> Hosts::NamesOfOldHosts() const {
  std::map<std::string, std::optional<store::Day>> newest;
  std::set<store::Day> recorded;
  for (const std::shared_ptr<Host>& host : All()) {
    const Result<std::vector<store::Day>> days = store::RecordedDays(host->folder());
    if (!days.has_value()) continue;
    newest[host->name()] = days->empty() ? std::nullopt : std::optional(days->back());
    recorded.insert(days->begin(), days->end());
  }
  std::set<std::string> old;
  const std::vector<store::Day> all(recorded.begin(), recorded.end());
  for (const auto& [name, day] : newest)
    if (!day.has_value() ||
        store::NewestBelieved(all, options_.max_days) - *day >= std::chrono::days(options_.max_days))
      old.insert(name);
  return old;
}

// By the server's clock. In days: a million of them don't fit into nanoseconds.
bool Hosts::IsPastRetention(const Host& host, int64_t epoch_now_ns) const {
  return (epoch_now_ns - host.last_seen_ns()) / kNanosPerDay >= options_.max_days;
}

void Hosts::Retain(int64_t epoch_now_ns, const std::function<bool()>& is_stopping) {
  for (const std::shared_ptr<Host>& host : All()) {
    if (is_stopping()) return;
    if (IsPastRetention(*host, epoch_now_ns)) continue;
    const Result<int> gone = host->Retain(options_.max_days, options_.max_bytes, is_stopping);
    if (!gone.has_value())
      LogError("can't delete days of {} past retention: {}", host->name(), gone.error().message);
    else if (*gone > 0)
      LogInfo("retention: deleted {} old days of {}", *gone, host->name());
  }
  for (std::shared_ptr<Host>& host : TakeOldHosts(epoch_now_ns)) Delete(std::move(host));
}

// The hosts that retention deletes. From now on they are not found, and until they are deleted their names
// can't be used.
std::vector<std::shared_ptr<Host>> Hosts::TakeOldHosts(int64_t epoch_now_ns) {
  const std::set<std::string> old = NamesOfOldHosts();
  std::vector<std::shared_ptr<Host>> taken;
  const std::scoped_lock lock(mutex_);
  std::erase_if(hosts_, [&](const auto& entry) {
    const std::shared_ptr<Host>& host = entry.second;
    // A host that a request uses stays until the next time.
    if (!IsPastRetention(*host, epoch_now_ns) || host.use_count() > 1 || !old.contains(host->name()))
      return false;
    being_deleted_.insert(host->name());
    taken.push_back(host);
    return true;
  });
  return taken;
}

// Without the lock: gigabytes take a while, in which all requests would wait.
void Hosts::Delete(std::shared_ptr<Host> host) {
  const std::string name = host->name(), folder = host->folder();
  host.reset();  // closes its files
  std::error_code failed;
  fs::remove_all(folder, failed);
  if (failed)
    LogError("can't delete the data of {} past retention: {}", name, failed.message());
  else
    LogInfo("retention: deleted {}, which has sent nothing for {} days", name, options_.max_days);
  const std::scoped_lock lock(mutex_);
  being_deleted_.erase(name);
  if (failed) hosts_[name] = Make(name);
}

int Hosts::LimitMemory(int64_t max_bytes) {
  const int64_t now_ns = MonotonicNow();
  struct Use {
    std::shared_ptr<Host> host;
    bool silent = false;
    bool watched = false;
    int64_t bytes = 0;
  };
  int64_t over_bytes = ResidentBytes() - max_bytes;
  std::vector<Use> uses;
  for (const std::shared_ptr<Host>& host : All()) {
    Use use{.host = host, .silent = host->IsSilent(now_ns), .watched = host->IsWatched(now_ns)};
    if ((!use.silent && over_bytes <= 0) || !host->IsOpen()) continue;
    use.bytes = host->MemoryBytes();
    uses.push_back(std::move(use));
  }
  std::ranges::sort(uses, [](const Use& one, const Use& other) {
    return std::tuple(one.watched, !one.silent, -one.bytes) <
           std::tuple(other.watched, !other.silent, -other.bytes);
  });
  int closed = 0;
  for (const Use& use : uses) {
    if (over_bytes <= 0 && (use.watched || !use.silent)) break;
    if (!use.host->CloseFiles()) continue;
    ++closed;
    over_bytes -= use.bytes;
  }
  return closed;
}

size_t Hosts::Agents() const {
  const int64_t now_ns = MonotonicNow();
  return static_cast<size_t>(std::ranges::count_if(
      All(), [now_ns](const std::shared_ptr<Host>& host) { return !host->IsSilent(now_ns); }));
}

Status Hosts::CheckRoom() const { return CheckDiskRoom(options_.folder, options_.min_free_bytes); }

}  // namespace gpusonde::serve
