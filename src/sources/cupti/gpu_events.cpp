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
#include <utility>
#include <vector>

#include "sources/cupti/decoder.h"
#include "sources/cupti/probe_reader.h"
#include "sources/cupti/socket_reader.h"
#include "wire/gpu_event.h"

namespace gpusonde::cupti {
namespace {

constexpr std::string_view kLibraryName = "libgpusonde-inject.so";

struct FileId {
  dev_t device;
  ino_t inode;
  auto operator<=>(const FileId&) const = default;
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
  bool has_sockets = false;
  // The program's end of the last one: its number, and what /proc calls it ("socket:[4711]").
  int socket_number = -1;
  std::string socket_name;
  std::optional<ProbeReader> probes;
  std::map<FileId, bool> attached_files;  // with every_process: whether it is ours

  Status Watch(int fd) {
    epoll_event event{};
    event.events = EPOLLIN;
    if (::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, fd, &event) != 0) return Fail(ErrnoError(errno, "epoll_ctl"));
    return {};
  }
  Result<bool> ConsiderFile(int32_t pid, const Fd& file);

  // Launchers start ranks without what they inherited themselves (Python's subprocess does by default): those
  // have the probes alone.
  bool HasSocket(int32_t pid) const {
    if (!has_sockets) return false;
    std::array<char, 64> name{};
    const ssize_t length =
        ::readlink(fmt::format("/proc/{}/fd/{}", pid, socket_number).c_str(), name.data(), name.size());
    if (length < 0) return errno != ENOENT;
    return std::string_view(name.data(), static_cast<size_t>(length)) == socket_name;
  }
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
    ASSIGN_OR_RETURN(state->probes,
                     ProbeReader::Create(options.ring_bytes, options.bytes_per_second, *tables));
    TRY(state->Watch(state->probes->fd()));
  }
  return GpuEvents(std::move(state));
}

Result<GpuEvents::Inheritance> GpuEvents::MakeSocket() {
  ASSIGN_OR_RETURN(SocketReader::ProgramEnd end, state_->sockets.Open());
  struct stat status{};
  if (::fstat(end.fd.get(), &status) != 0) return Fail(ErrnoError(errno, "fstat"));
  state_->has_sockets = true;
  state_->socket_number = end.fd.get();
  state_->socket_name = fmt::format("socket:[{}]", status.st_ino);
  TRY(state_->Watch(state_->sockets.fds().back()));
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
  return state_->ConsiderFile(pid, *file);
}

Result<bool> GpuEvents::State::ConsiderFile(int32_t pid, const Fd& file) {
  struct stat status{};
  if (::fstat(file.get(), &status) != 0) return Fail(ErrnoError(errno, "fstat"));
  const FileId id{status.st_dev, status.st_ino};
  if (const auto known = attached_files.find(id); known != attached_files.end()) return known->second;
  const bool ours = HasContent(file.get(), content);
  if (options.every_process) attached_files.emplace(id, ours);
  if (!ours) return false;
  // By the descriptor, so that what was compared is what is attached to.
  TRY(probes->Attach(options.every_process ? ProbeReader::kEveryProcess : pid,
                     fmt::format("/proc/self/fd/{}", file.get()), HasSocket(pid)));
  return true;
}

Status GpuEvents::AttachBeforeExec(int32_t pid) {
  if (!state_->probes) return {};
  return state_->probes->Attach(pid, state_->options.library_path, state_->has_sockets);
}

void GpuEvents::Forget(int32_t pid) {
  if (state_->probes) state_->probes->Detach(pid);
  state_->decoder.Forget(pid);
}

Status GpuEvents::Drain(const std::function<void(const Event&)>& visit) {
  // A launch that went both ways went by the probe first: with the sockets read before the ring, whatever was
  // in a socket has its better half in the ring by now, and the decoder passes over the second of two.
  std::vector<std::pair<int32_t, std::vector<std::byte>>> launches;
  state_->sockets.Drain([&](int32_t pid, std::span<const std::byte> batch) {
    if (state_->probes && IsLaunchBatch(batch))
      launches.emplace_back(pid, std::vector(batch.begin(), batch.end()));
    else
      state_->decoder.Decode({.pid = pid}, batch, visit);
  });
  if (state_->probes)
    state_->probes->Drain([&](const Decoder::Origin& origin, std::span<const std::byte> batch) {
      state_->decoder.Decode(origin, batch, visit);
    });
  for (const auto& [pid, batch] : launches) state_->decoder.Decode({.pid = pid}, batch, visit);
  return {};
}

model::DropCounts GpuEvents::TakeDrops() {
  model::DropCounts drops = state_->decoder.TakeDrops();
  drops.Merge(state_->sockets.TakeDrops());
  if (state_->probes) drops.Merge(state_->probes->TakeDrops());
  return drops;
}

int GpuEvents::wake_fd() const { return state_->epoll.get(); }

void GpuEvents::WakeAfter(int64_t time_ns) {
  if (state_->probes) state_->probes->WakeAfter(time_ns);
}

void GpuEvents::Stop() {
  if (state_->probes) state_->probes->Stop();
}

}  // namespace gpusonde::cupti
