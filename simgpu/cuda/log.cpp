// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <mutex>
#include <string>

#include "simgpu/cuda/driver.h"
#include "simgpu/machine/settings.h"

namespace simgpu::cuda {
namespace {

// Written in chunks of whole lines, so that several processes can append to one file.
class LogFile {
 public:
  static LogFile& Get() {
    static LogFile& file = *new LogFile;
    return file;
  }

  bool wanted() const { return fd_ >= 0; }

  void Append(std::string_view line) {
    const std::lock_guard lock(mutex_);
    pending_ += line;
    if (pending_.size() >= kPieceBytes) Write();
  }

  void Flush() {
    const std::lock_guard lock(mutex_);
    Write();
  }

 private:
  static constexpr size_t kPieceBytes = size_t{64} << 10;

  LogFile() {
    const char* path = TextSetting("SIMGPU_LOG", nullptr);
    if (path != nullptr) fd_ = ::open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    // A forked child must not write the parent's pending lines again.
    ::pthread_atfork(nullptr, nullptr, [] { Get().pending_.clear(); });
  }

  void Write() {
    // Lines that can't be written are dropped: the simulated device must not disturb the program.
    if (!pending_.empty()) [[maybe_unused]]
      const ssize_t written = ::write(fd_, pending_.data(), pending_.size());
    pending_.clear();
  }

  int fd_ = -1;
  std::mutex mutex_;
  std::string pending_;
};

[[gnu::destructor]] void FlushLog() {
  if (LogFile::Get().wanted()) LogFile::Get().Flush();
}

constexpr std::array kNames = {"kernel", "memcpy", "memset", "sync", "graph"};

}  // namespace

void Log(const Operation& operation) {
  LogFile& file = LogFile::Get();
  if (!file.wanted()) return;
  char line[256];
  const int size = std::snprintf(
      line, sizeof line, "%s\t%d\t%u\t%u\t%u\t%u\t%lld\t%lld\t%lld\t%llu\t",
      kNames[static_cast<size_t>(operation.kind)], ::getpid(), operation.device, operation.context_id,
      operation.stream_id, operation.correlation_id, static_cast<long long>(operation.start_ns),
      static_cast<long long>(operation.end_ns), static_cast<long long>(operation.bytes),
      static_cast<unsigned long long>(operation.graph_node_id));
  file.Append(std::string(line, static_cast<size_t>(size)) +
              (operation.name == nullptr ? "" : operation.name) + "\n");
}

}  // namespace simgpu::cuda
