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

// Has program files parsed by processes of our own that have nothing to lose (agent/file_server.h): any user
// may run a file of their own making, and whatever it does to its reader, it doesn't hold up this thread for
// long, nor take its memory. One process reads files of the system and of trusted users, another those of
// everybody else, user by user in turns. They are started with the first question, and ended when there has
// been none for a while. A file at which its reader dies, or that takes too long, has no answer. Not
// thread-safe.
class FileReader {
 public:
  struct Options {
    // The server's program and arguments; its socket will be descriptor 3. Empty: `parse` does its work, in
    // this process (tests).
    std::vector<std::string> command;
    Result<std::string> (*parse)(FileRequest& request) = nullptr;
    // Of one file. The most costly that the parsers' budgets allow take 1.2 s.
    int64_t deadline_ns = 10 * kNanosPerSecond;
    // A caller waits so long for an answer, while the user has time left: libc takes 2 ms, libLLVM 90 ms, and
    // what is known at once need not be corrected later.
    int64_t patience_ns = 100 * kNanosPerMilli;
  };
  explicit FileReader(Options options) : options_(std::move(options)) {}
  ~FileReader();
  FileReader(const FileReader&) = delete;
  FileReader& operator=(const FileReader&) = delete;

  struct Question {
    FileQuestion question{};
    Id128 file;
    int32_t user_id = 0;  // on whose account; 0 for files of the system
    std::string name;
    bool wait = true;  // a little
  };
  struct Files {
    Fd file;
    Fd debug_file;  // may be invalid
  };
  struct Answer {
    Files files;
    Result<std::string> bytes;
  };

  // The answer, or nothing when it isn't there yet: then ask the same again later, and have it once. `open`
  // is called for the first time; its error is an answer.
  std::optional<Answer> Ask(const Question& question, const std::function<Result<Files>()>& open);

  // Receives answers that are there, and sends what there is room for.
  void Exchange();

  // How many answers have arrived: changes when asking again may help.
  uint64_t answered() const { return answered_; }
  // Whether nothing is being read.
  bool idle() const;

  // Waits until an answer arrives, `timeout_ms` at most.
  void Wait(int timeout_ms) const;

 private:
  struct Key {
    FileQuestion question{};
    Id128 file;
    auto operator<=>(const Key&) const = default;
  };
  struct Job {
    Question question;
    Files files;
    Fd answer;
    int64_t done_ns = 0;  // CLOCK_MONOTONIC
    Status result;
    bool done() const { return done_ns > 0; }
  };
  struct Server {
    int32_t pid = 0;
    Fd socket;
    std::map<int32_t, std::deque<Key>> queues;  // by user
    int32_t last_user = 0;                      // who was served last
    std::optional<Key> reading;
    int64_t since_ns = 0;  // of that, or of the last
  };

  // Of the file's server.
  Server& ServerOf(const Question& question);
  void Exchange(Server& server);
  void Send(Server& server);
  void Finish(Server& server, Status result);
  Status Start(Server& server);
  static void Stop(Server& server);
  Answer ParseHere(const Question& question, Files files) const;
  Answer Take(std::map<Key, Job>::iterator job);

  Options options_;
  std::array<Server, 2> servers_;  // of trusted users, and of others
  std::map<Key, Job> jobs_;
  uint64_t answered_ = 0;
  // Of the time that this thread waits.
  TimeShares waiting_{kNanosPerSecond, 200 * kNanosPerMilli, 400 * kNanosPerMilli};
};

}  // namespace gpusonde::symbols
