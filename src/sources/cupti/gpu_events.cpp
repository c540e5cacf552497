// SPDX-License-Identifier: Apache-2.0
#include "sources/cupti/gpu_events.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/file_time.h"
#include "base/log.h"
#include "base/time.h"
#include "sources/cupti/decoder.h"
#include "sources/cupti/inject_library.h"
#include "sources/cupti/probe_reader.h"
#include "sources/cupti/socket_reader.h"
#include "sources/proc/process.h"
#include "wire/gpu_event.h"

namespace gpusonde::cupti {
namespace {

// The library checks every 250 ms whether a snapshot is requested, and sends it before its next records. A
// request stays open for the minimum, and up to the maximum while records are held for which no snapshot
// arrives.
constexpr int64_t kMinRequestNs = 600 * kNanosPerMilli, kMaxRequestNs = 3 * kNanosPerSecond;

// Files with the library's name that are not our library, remembered so that they are read once.
constexpr size_t kMaxOthers = 10'000;

struct FileId {
  dev_t device;
  ino_t inode;
  auto operator<=>(const FileId&) const = default;
};

// What was found of a file.
struct Considered {
  bool ours = false;  // our library, and attached to
  int64_t bytes = 0;
  int64_t changed_ns = 0;

  // Whether it may be our library meanwhile: written in place, or another file with the inode of a deleted
  // one.
  bool MayBeOurs(const struct stat& status) const {
    return !ours && (status.st_size != bytes || ChangedNs(status) != changed_ns);
  }
  static int64_t ChangedNs(const struct stat& status) { return FileTimeNs(status.st_ctim); }
};

// Whether the file is byte for byte our library.
bool HasContent(int fd, std::string_view content) {
  struct stat status{};
  if (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) return false;
  if (std::cmp_not_equal(status.st_size, content.size())) return false;
  std::string part(size_t{64} << 10, '\0');
  for (size_t at = 0; at < content.size();) {
    const ssize_t got = ::pread(fd, part.data(), part.size(), static_cast<off_t>(at));
    if (got <= 0 || std::string_view(part).substr(0, static_cast<size_t>(got)) !=
                        content.substr(at, static_cast<size_t>(got)))
      return false;
    at += static_cast<size_t>(got);
  }
  return true;
}

// A path through the descriptor, so that probes are attached in the very file that was compared.
std::string PathOf(const Fd& file) { return fmt::format("/proc/self/fd/{}", file.get()); }

bool IsLaunchBatch(std::span<const std::byte> batch) {
  gpusonde_gpu_batch header;
  if (batch.size() < sizeof header) return false;
  std::memcpy(&header, batch.data(), sizeof header);
  return header.channel == GPUSONDE_GPU_LAUNCH;
}

}  // namespace

struct GpuEvents::State {
  Options options;
  std::string content;  // of the library
  Fd epoll;
  Decoder decoder;
  SocketReader sockets;
  // The program's end of the last socket: its descriptor number, and its name in /proc ("socket:[4711]").
  int socket_number = -1;
  std::string socket_name;
  std::optional<ProbeReader> probes;
  std::map<FileId, Considered> considered_files;     // with every_process
  std::map<FileId, Fd> files;                        // those that are our library
  std::set<std::pair<int32_t, FileId>> with_stacks;  // processes whose launches are reported
  std::optional<int64_t> requested_ns;               // since when snapshots are requested
  model::DropCounts drops;
  bool reported_full = false;

  Status Watch(int fd) {
    epoll_event event{};
    event.events = EPOLLIN;
    if (::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, fd, &event) != 0) return Fail(ErrnoError(errno, "epoll_ctl"));
    return {};
  }
  Result<bool> ConsiderFile(int32_t pid, Fd file, bool has_begun);
  Status AttachTo(int32_t pid, const Fd& file, bool has_begun);
  bool MakeRoomForFile();

  Status RequestSnapshot(int32_t pid, const Fd& file);
  void FollowSnapshots(const Decoder::Visit& visit);
};

GpuEvents::GpuEvents(std::unique_ptr<State> state) : state_(std::move(state)) {}
GpuEvents::GpuEvents(GpuEvents&&) noexcept = default;
GpuEvents& GpuEvents::operator=(GpuEvents&&) noexcept = default;
GpuEvents::~GpuEvents() = default;

Result<GpuEvents> GpuEvents::Create(const Options& options, const ebpf::StackTables* tables) {
  auto state = std::make_unique<State>();
  state->options = options;
  ASSIGN_OR_RETURN(state->content, ReadFile(options.library_path));
  state->epoll = Fd(::epoll_create1(EPOLL_CLOEXEC));
  if (!state->epoll.valid()) return Fail(ErrnoError(errno, "epoll_create1"));
  if (tables != nullptr) {
    state->decoder = Decoder(true);
    ASSIGN_OR_RETURN(state->probes,
                     ProbeReader::Create(options.ring_bytes, options.bytes_per_second, *tables));
    TRY(state->Watch(state->probes->fd()));
  }
  GpuEvents events(std::move(state));
  // Attach to the installed library now, so that programs that load it are received from their first call on;
  // copies of it are attached to once they are mapped.
  if (options.every_process) TRY(events.AttachBeforeExec(ProbeReader::kEveryProcess));
  return events;
}

Result<GpuEvents::Inheritance> GpuEvents::MakeSocket() {
  ASSIGN_OR_RETURN(SocketReader::ProgramEnd end, state_->sockets.Open());
  struct stat status{};
  if (::fstat(end.fd.get(), &status) != 0) return Fail(ErrnoError(errno, "fstat"));
  state_->socket_number = end.fd.get();
  state_->socket_name = fmt::format("socket:[{}]", status.st_ino);
  TRY(state_->Watch(state_->sockets.fds().back()));
  if (state_->probes) end.environment += fmt::format(":{}", ::getpid());
  return Inheritance{.fd = std::move(end.fd), .environment = std::move(end.environment)};
}

bool LooksLikeInjectLibrary(std::string_view path) {
  const size_t slash = path.rfind('/');
  return path.substr(slash == std::string_view::npos ? 0 : slash + 1) == kLibraryName;
}

Result<bool> GpuEvents::Consider(int32_t pid, const std::string& path) {
  if (!state_->probes || !LooksLikeInjectLibrary(path) || !path.starts_with('/')) return false;
  if (!state_->options.every_process && state_->probes->AttachedTo(pid)) return true;
  Result<Fd> file = Open(fmt::format("/proc/{}/root{}", pid, path), O_RDONLY | O_NONBLOCK | O_NOCTTY);
  if (!file.has_value()) {
    if (file.error().code == ErrorCode::kNotFound) return false;  // it ended, or the file was replaced
    return Fail(std::move(file).error());
  }
  return state_->ConsiderFile(pid, std::move(*file), true);
}

Result<bool> GpuEvents::State::ConsiderFile(int32_t pid, Fd file, bool has_begun) {
  struct stat status{};
  if (::fstat(file.get(), &status) != 0) return Fail(ErrnoError(errno, "fstat"));
  const FileId id{status.st_dev, status.st_ino};
  if (const auto known = considered_files.find(id);
      known != considered_files.end() && !known->second.MayBeOurs(status))
    return known->second.ours;
  bool ours = HasContent(file.get(), content);
  if (ours && !files.contains(id) && !MakeRoomForFile()) {
    drops.Add(model::DropReason::kGpuProgramUnrecorded);
    if (!std::exchange(reported_full, true))
      LogWarn("GPU work of further programs is not profiled: {} copies of {} are in use, the limit",
              files.size(), kLibraryName);
    ours = false;
  }
  if (considered_files.size() >= kMaxOthers + options.max_files)
    std::erase_if(considered_files, [](const auto& known) { return !known.second.ours; });
  if (options.every_process)
    considered_files[id] = {
        .ours = ours, .bytes = status.st_size, .changed_ns = Considered::ChangedNs(status)};
  if (!ours) return false;
  const auto [kept, is_new] = files.try_emplace(id, std::move(file));
  const int32_t whose = options.every_process ? ProbeReader::kEveryProcess : pid;
  if (Status attached = AttachTo(whose, kept->second, has_begun); !attached.has_value()) {
    // As before, so that the next one to map the file has it attached to.
    probes->Detach(whose, PathOf(kept->second));
    considered_files.erase(id);
    if (is_new) files.erase(kept);
    return Fail(std::move(attached).error());
  }
  return true;
}

Status GpuEvents::State::AttachTo(int32_t pid, const Fd& file, bool has_begun) {
  // Before the probes that wake the library, so that it never governs itself by another budget.
  if (options.budget.has_value()) TRY(probes->AttachBudget(pid, PathOf(file), *options.budget));
  TRY(probes->Attach(pid, PathOf(file), ProbeReader::Probes::kReports));
  // Last: records that are reported between a snapshot and the attachment to their probe would be in its
  // totals later on, and nowhere else. A program before its exec has reported nothing yet.
  if (has_begun) TRY(RequestSnapshot(pid, file));
  return {};
}

// Whether one more file may be attached to; if there are too many, one that was deleted makes room: nothing
// can load it any more.
bool GpuEvents::State::MakeRoomForFile() {
  if (files.size() < options.max_files) return true;
  for (auto file = files.begin(); file != files.end(); ++file) {
    struct stat status{};
    if (::fstat(file->second.get(), &status) != 0 || status.st_nlink > 0) continue;
    probes->DetachFile(PathOf(file->second));
    std::erase_if(with_stacks, [&](const auto& of) { return of.second == file->first; });
    considered_files.erase(file->first);
    files.erase(file);
    return true;
  }
  return false;
}

Status GpuEvents::State::RequestSnapshot(int32_t pid, const Fd& file) {
  requested_ns = MonotonicNow();
  return probes->Attach(pid, PathOf(file), ProbeReader::Probes::kSnapshots);
}

// Keeps requesting snapshots while records are held for lack of names, and for kMinRequestNs.
void GpuEvents::State::FollowSnapshots(const Decoder::Visit& visit) {
  const std::vector<int32_t> holding = decoder.Holding();
  const int64_t now_ns = MonotonicNow();
  if (!requested_ns.has_value()) {
    for (const int32_t pid : holding)
      for (const auto& [id, file] : files)
        if (const Status requested = RequestSnapshot(pid, file); !requested.has_value())
          LogInfo("can't request a snapshot of GPU state from process {}: {}", pid,
                  requested.error().message);
    return;
  }
  if (now_ns < *requested_ns + (holding.empty() ? kMinRequestNs : kMaxRequestNs)) return;
  // Of a process that has ended meanwhile nobody else would know what it was. After Stop all are known.
  if (*requested_ns != 0) decoder.ForgetEnded(holding, proc::HasProcess);
  decoder.Release(visit);
  probes->EndSnapshots();
  requested_ns.reset();
}

Status GpuEvents::AttachBeforeExec(int32_t pid) {
  if (!state_->probes) return {};
  ASSIGN_OR_RETURN(Fd file, Open(state_->options.library_path, O_RDONLY));
  ASSIGN_OR_RETURN(const bool ours,
                   state_->ConsiderFile(pid, std::move(file), state_->options.every_process));
  return ours ? Status() : Fail(ErrorCode::kIo, state_->options.library_path + " was replaced meanwhile");
}

Status GpuEvents::EnableLaunchStacks(int32_t pid) {
  if (!state_->probes) return {};
  for (const auto& [id, file] : state_->files) {
    if (state_->with_stacks.contains({pid, id})) continue;
    TRY(state_->probes->Attach(pid, PathOf(file), ProbeReader::Probes::kLaunches));
    state_->with_stacks.emplace(pid, id);
  }
  return {};
}

bool GpuEvents::HasSocket(int32_t pid) const {
  std::array<char, 64> name{};
  const std::string path = fmt::format("/proc/{}/fd/{}", pid, state_->socket_number);
  const ssize_t length = ::readlink(path.c_str(), name.data(), name.size());
  if (length < 0) return errno != ENOENT;
  return std::string_view(name.data(), static_cast<size_t>(length)) == state_->socket_name;
}

void GpuEvents::Forget(int32_t pid) {
  std::erase_if(state_->with_stacks, [pid](const auto& of) { return of.first == pid; });
  if (state_->probes) state_->probes->Detach(pid);
  state_->decoder.Forget(pid);
}

Status GpuEvents::Drain(const Visit& visit) {
  const Decoder::Visit decoded = [&visit](const Event& event) { visit(sources::Event(event)); };
  // A launch that is sent both ways is sent through the probe first. As the sockets are read before the ring,
  // each launch found in a socket is in the ring too, with its stack; launches from sockets are decoded last,
  // so that the decoder skips those that it has from the ring.
  std::vector<std::pair<int32_t, std::vector<std::byte>>> launches;
  state_->sockets.Drain([&](int32_t pid, std::span<const std::byte> batch) {
    if (state_->probes && IsLaunchBatch(batch))
      launches.emplace_back(pid, std::vector(batch.begin(), batch.end()));
    else
      state_->decoder.Decode({.pid = pid}, batch, decoded);
  });
  if (state_->probes)
    state_->probes->Drain([&](const Decoder::Origin& origin, std::span<const std::byte> batch) {
      state_->decoder.Decode(origin, batch, decoded);
    });
  for (const auto& [pid, batch] : launches) state_->decoder.Decode({.pid = pid}, batch, decoded);
  if (state_->probes) state_->FollowSnapshots(decoded);
  return {};
}

model::DropCounts GpuEvents::DrainDrops() {
  model::DropCounts drops = state_->decoder.DrainDrops();
  drops.Merge(state_->drops.Take());
  drops.Merge(state_->sockets.DrainDrops());
  if (state_->probes) drops.Merge(state_->probes->DrainDrops());
  return drops;
}

std::vector<int> GpuEvents::wake_fds() const { return {state_->epoll.get()}; }

void GpuEvents::WakeAfter(int64_t time_ns) {
  if (state_->probes) state_->probes->WakeAfter(time_ns);
}

void GpuEvents::Stop() {
  if (!state_->probes) return;
  state_->probes->Stop();
  state_->requested_ns = 0;  // no snapshot will come: the next Drain releases the held records
}

}  // namespace gpusonde::cupti
