// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/fd.h"
#include "base/id128.h"
#include "base/result.h"
#include "base/time.h"
#include "symbols/line_cache.h"
#include "symbols/line_protocol.h"

namespace gpusonde::symbols {

// Requests source lines from a process of our own (symbols/line_server.h) without waiting for them. The
// process is started by the first request, and ended after a while without requests, which frees its memory.
// A program that runs for long still causes a request now and then; from then on a few requests wait for
// more. If the process dies or hangs over a file, no more requests are made about that file. Not thread-safe.
class LineClient {
 public:
  struct Options {
    // The server's program and arguments; its socket will be descriptor 3. Empty: no requests are made.
    std::vector<std::string> command;
    // Without an answer for this long the server is considered hung. Longer than a debuginfod server may take
    // for a large file.
    int64_t timeout_ns = 60 * kNanosPerSecond;
    // After so long without a request the server is ended.
    int64_t idle_ns = 10 * kNanosPerSecond;
    // How long a few requests then wait for more: a server that is started again reads a program's debug
    // information anew, which takes a tenth of a second and more.
    int64_t pause_ns = 30 * kNanosPerSecond;
    // The CPU time that the server may take: `burst_ns` at once, and in the long run this share of one CPU.
    // Then requests wait, as on a machine where new programs with debug information start all the time.
    double cpu_share = 1;
    int64_t burst_ns = 30 * kNanosPerSecond;
    // Where lines are kept for the next time (symbols/line_cache.h); empty: nowhere.
    std::string cache_folder;
  };
  explicit LineClient(Options options) : options_(std::move(options)), cache_(options_.cache_folder) {}
  ~LineClient() {
    Keep();
    Stop();
  }
  LineClient(const LineClient&) = delete;
  LineClient& operator=(const LineClient&) = delete;

  struct Answer {
    Id128 file;
    LineAnswer::Kind kind = LineAnswer::Kind::kFrames;
    uint64_t offset = 0;
    std::vector<SourceFrame> frames;  // innermost first
  };

  // Requests the lines at an offset of a file, which `path` names in the root of process `pid`. `open` is
  // called unless the file is open or the cache knows the answer. A file is held open while requests about it
  // wait, and at most kMaxOpenFiles are. False when no answer will come.
  bool Ask(const Id128& file, int32_t pid, const std::string& path, uint64_t offset,
           const std::function<Result<Fd>()>& open);

  // Visits the answers that have arrived, and sends as many requests as the socket has room for. A file
  // without lines gets one answer that says so.
  void Exchange(const std::function<void(const Answer&)>& visit);

  static constexpr size_t kMaxOpenFiles = 128;
  // When so many files are known, those are forgotten about which no request waits; 200 bytes each. A file
  // without lines is then asked about once more.
  static constexpr size_t kMaxFiles = 10'000;
  size_t files() const { return files_.size(); }
  // What the cache knows of files is dropped from memory when it would be more. Its text has at most 2 MiB
  // of each, which takes more in memory.
  static constexpr size_t kMaxLoadedBytes = size_t{16} << 20;
  size_t loaded_bytes() const { return loaded_bytes_; }

  // Whether no request is waiting or being answered.
  bool idle() const { return queue_.empty() && ready_.empty() && !asked_.has_value(); }
  // The number of offsets without an answer.
  size_t waiting() const;

  // Waits until an answer arrives, `timeout_ms` at most. The next Exchange sends what has waited for more
  // requests, or for CPU time.
  void Wait(int timeout_ms);

 private:
  struct File {
    Id128 id;
    int32_t pid = 0;
    std::string path;
    Fd fd;                                  // open while `offsets` has any
    std::optional<LineCache::Lines> known;  // from the cache; nullopt while there are no requests about it
    LineCache::Found found;                 // lines that the cache doesn't have yet
    std::vector<uint64_t> offsets;          // not sent yet
    bool hopeless = false;
  };
  struct Asked {
    uint32_t file = 0;
    size_t answers_due = 0;
  };

  Status Start();
  void Stop();
  void Send();
  bool HasCpuTime();
  void ChargeServer();
  void Close(File& file);
  // Adds what was found to the cache.
  void Keep();
  void ForgetFiles();
  void DropLoaded();
  // Makes no more requests about the file of the last request.
  void GiveUp(LineAnswer::Kind kind, const std::function<void(const Answer&)>& visit);

  Options options_;
  LineCache cache_;
  std::vector<Answer> ready_;
  int32_t server_pid_ = 0;
  Fd socket_;
  // By number. The server knows files by their numbers, so none is used again.
  std::unordered_map<uint32_t, File> files_;
  uint32_t next_number_ = 0;
  size_t open_files_ = 0;
  size_t loaded_bytes_ = 0;
  std::unordered_map<Id128, uint32_t> numbers_;
  std::deque<uint32_t> queue_;  // of files with offsets to send
  std::optional<Asked> asked_;
  int64_t asked_ns_ = 0;
  int64_t received_ns_ = 0;
  int64_t paused_until_ns_ = 0;  // few requests don't start the server before
  int64_t server_cpu_ns_ = 0;    // that this server has been charged
  double charged_ns_ = 0;        // of all servers, less what has been regained since
  int64_t regained_ns_ = 0;      // when it was last lowered
};

}  // namespace gpusonde::symbols
