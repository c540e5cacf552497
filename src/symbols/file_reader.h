// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/fd.h"
#include "base/id128.h"
#include "base/result.h"
#include "base/time.h"
#include "base/time_shares.h"
#include "symbols/file_protocol.h"

namespace gpusonde::symbols {

// Parses program files in sandboxed processes (agent/file_server.h): any user may run a hostile file, which
// must not crash this process, block this thread or use its memory. One server reads files of the system and
// of trusted users (root and ours), another those of all other users, round robin. Servers start with the
// first request and end after some seconds without one. A file that kills its server or takes too long gets
// an error as its answer. Not thread-safe.
class FileReader {
 public:
  struct Options {
    // The server's program and arguments; its socket will be descriptor 3. Empty: `parse` does its work, in
    // this process (tests).
    std::vector<std::string> command;
    Result<std::string> (*parse)(FileRequest& request) = nullptr;
    // For one file. The slowest files that the parsers' budgets allow take 1.2 s of CPU time, and the server
    // has a tenth of a CPU where all are busy.
    int64_t deadline_ns = 30 * kNanosPerSecond;
    // How long Ask waits for an answer, if the user has time left: libc takes 2 ms, libLLVM 90 ms, and rows
    // whose names are known at once need not be written again.
    int64_t timeout_ns = 100 * kNanosPerMilli;
    // Memory of the answers that haven't been asked for yet, except the newest one, which may have half as
    // much for itself. When they need more, the oldest answers of the user who has most are dropped, and made
    // again when asked for.
    int64_t max_kept_bytes = int64_t{384} << 20;
  };
  explicit FileReader(Options options) : options_(std::move(options)) {}
  ~FileReader();
  FileReader(const FileReader&) = delete;
  FileReader& operator=(const FileReader&) = delete;

  struct Request {
    FileRequestKind kind{};
    Id128 file;
    int32_t user_id = 0;  // whose time it takes; 0 for files of the system
    std::string name;     // for messages
    bool wait = true;     // up to timeout_ns
  };
  struct Files {
    Fd file;
    Fd debug_file;  // may be invalid
  };
  struct Answer {
    Files files;
    Result<std::string> bytes;
  };

  // Returns the answer, or nullopt if it has not arrived: make the same request again later. An answer is
  // returned once. `open` is called when a request is made for the first time; its error is an answer.
  std::optional<Answer> Ask(const Request& request, const std::function<Result<Files>()>& open);

  // Receives answers and sends the next requests; doesn't block.
  void Exchange();

  // The number of answers that have arrived: if it has changed, asking again may succeed.
  uint64_t answered() const { return answered_; }
  // Whether no file is being read.
  bool idle() const;

  // Waits until an answer arrives, `timeout_ms` at most.
  void Wait(int timeout_ms) const;

 private:
  struct Key {
    FileRequestKind kind{};
    Id128 file;
    auto operator<=>(const Key&) const = default;
  };
  struct Job {
    Request request;
    Files files;
    Fd answer;
    int64_t done_ns = 0;  // CLOCK_MONOTONIC
    int64_t kept_bytes = 0;
    Status result;
    bool done() const { return done_ns > 0; }
  };
  struct Server {
    int32_t pid = 0;
    Fd socket;
    std::map<int32_t, std::deque<Key>> queues;  // by user
    int32_t last_user = 0;                      // whose request was sent last
    std::optional<Key> reading;
    int64_t since_ns = 0;  // when reading began, or ended if none is read
  };

  Server& ServerOf(const Request& request);
  void Exchange(Server& server);
  void Send(Server& server);
  void Finish(Server& server, Status result);
  void DropKept(int64_t now_ns);
  Status Start(Server& server);
  static void Stop(Server& server);
  Answer ParseHere(const Request& request, Files files) const;
  Answer Return(std::map<Key, Job>::iterator job);

  Options options_;
  std::array<Server, 2> servers_;  // for trusted users, and for others
  std::map<Key, Job> jobs_;
  uint64_t answered_ = 0;
  // Shares of the time for which Ask may block this thread.
  TimeShares waiting_{kNanosPerSecond, 200 * kNanosPerMilli, 400 * kNanosPerMilli};
};

}  // namespace gpusonde::symbols
