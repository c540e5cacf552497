// SPDX-License-Identifier: Apache-2.0
#include "symbols/file_reader.h"

#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/log.h"
#include "base/regular_file.h"
#include "symbols/server_process.h"

namespace gpusonde::symbols {
namespace {

// A server without requests ends after this time.
constexpr int64_t kFileReaderIdleNs = 10 * kNanosPerSecond;
// How long an answer is kept that is not asked for again.
constexpr int64_t kKeptNs = 30 * kNanosPerSecond;
// Each job holds three descriptors.
constexpr size_t kMaxJobs = 128;
constexpr size_t kMaxJobsOfUser = 32;
// The symbols of 4,000,000 functions (symbols/elf_file.cpp), at 32 bytes each, with a margin.
constexpr size_t kMaxAnswerBytes = size_t{192} << 20;

}  // namespace

FileReader::~FileReader() {
  for (Server& server : servers_) Stop(server);
}

FileReader::Server& FileReader::ServerOf(const Request& request) {
  const bool trusted = request.user_id == 0 || request.user_id == static_cast<int32_t>(::geteuid());
  return servers_[trusted ? 0 : 1];
}

std::optional<FileReader::Answer> FileReader::Ask(const Request& request,
                                                  const std::function<Result<Files>()>& open) {
  const Key key{request.kind, request.file};
  Server& server = ServerOf(request);
  auto job = jobs_.find(key);
  if (job != jobs_.end() && job->second.done()) return Return(job);
  if (job == jobs_.end()) {
    std::deque<Key>& queue = server.queues[request.user_id];
    if (jobs_.size() >= kMaxJobs || queue.size() >= kMaxJobsOfUser) return std::nullopt;
    Result<Files> files = open();
    if (!files.has_value()) return Answer{{}, Fail(std::move(files).error())};
    if (options_.command.empty() && options_.parse != nullptr) return ParseHere(request, std::move(*files));
    Fd answer(::memfd_create("gpusonde-answer", MFD_CLOEXEC));
    if (!answer.valid()) return Answer{{}, Fail(ErrnoError(errno, "make room for an answer"))};
    job = jobs_.emplace(key, Job{request, std::move(*files), std::move(answer), 0, {}}).first;
    queue.push_back(key);
  }
  const int64_t begin_ns = MonotonicNow();
  const int64_t until_ns =
      begin_ns + (request.wait && waiting_.HasTime(request.user_id, begin_ns) ? options_.timeout_ns : 0);
  Exchange(server);
  for (int64_t now_ns = begin_ns; !job->second.done() && now_ns < until_ns; now_ns = MonotonicNow()) {
    pollfd fd{.fd = server.socket.get(), .events = POLLIN, .revents = 0};
    ::poll(&fd, 1, static_cast<int>((until_ns - now_ns) / kNanosPerMilli) + 1);
    Exchange(server);
  }
  waiting_.Spend(request.user_id, MonotonicNow() - begin_ns);
  if (!job->second.done()) return std::nullopt;
  return Return(job);
}

FileReader::Answer FileReader::ParseHere(const Request& request, Files files) const {
  FileRequest message{.kind = request.kind, .name = request.name, .file = {}, .debug_file = {}, .answer = {}};
  for (auto [own, lent] :
       {std::pair(&files.file, &message.file), std::pair(&files.debug_file, &message.debug_file)}) {
    if (!own->valid()) continue;
    Result<Fd> copy = Duplicate(*own);
    if (!copy.has_value()) return {std::move(files), Fail(std::move(copy).error())};
    *lent = std::move(*copy);
  }
  Result<std::string> bytes = options_.parse(message);
  return {std::move(files), std::move(bytes)};
}

FileReader::Answer FileReader::Return(std::map<Key, Job>::iterator job) {
  Job done = std::move(job->second);
  jobs_.erase(job);
  if (!done.result.has_value()) return {std::move(done.files), Fail(std::move(done.result).error())};
  struct stat status{};
  if (::fstat(done.answer.get(), &status) != 0 || status.st_size > static_cast<off_t>(kMaxAnswerBytes))
    return {std::move(done.files),
            Fail(ErrorCode::kUnsupported, done.request.name + " has too many functions")};
  return {std::move(done.files), ReadRegular(done.answer, kMaxAnswerBytes)};
}

void FileReader::Exchange() {
  for (Server& server : servers_) Exchange(server);
  DropKept(MonotonicNow());
}

void FileReader::DropKept(int64_t now_ns) {
  std::erase_if(jobs_, [now_ns](const auto& job) {
    return job.second.done() && now_ns - job.second.done_ns > kKeptNs;
  });
  std::map<int32_t, int64_t> by_user;
  int64_t bytes = 0;
  size_t done = 0;
  for (const auto& [key, job] : jobs_) {
    if (!job.done()) continue;
    by_user[job.request.user_id] += job.kept_bytes;
    bytes += job.kept_bytes;
    ++done;
  }
  for (; bytes > options_.max_kept_bytes && done > 1; --done) {
    auto& [user, most] =
        *std::ranges::max_element(by_user, {}, [](const auto& of_user) { return of_user.second; });
    auto oldest = jobs_.end();
    for (auto job = jobs_.begin(); job != jobs_.end(); ++job)
      if (job->second.done() && job->second.kept_bytes > 0 && job->second.request.user_id == user &&
          (oldest == jobs_.end() || job->second.done_ns < oldest->second.done_ns))
        oldest = job;
    most -= oldest->second.kept_bytes;
    bytes -= oldest->second.kept_bytes;
    jobs_.erase(oldest);
  }
}

void FileReader::Exchange(Server& server) {
  const int64_t now_ns = MonotonicNow();
  while (server.reading.has_value()) {
    Result<std::optional<FileAnswer>> received = ReceiveFileAnswer(server.socket.get());
    const std::string& name = jobs_.at(*server.reading).request.name;
    if (!received.has_value()) {
      LogWarn("the process that reads program files died while reading {}", name);
      Stop(server);
      Finish(server, Fail(ErrorCode::kUnsupported, "the process that read " + name + " died"));
    } else if (received->has_value()) {
      std::optional<Error>& error = (*received)->error;
      Finish(server, error.has_value() ? Status(Fail(std::move(*error))) : Status());
    } else if (now_ns - server.since_ns > options_.deadline_ns) {
      LogWarn("{} takes too long to read", name);
      Stop(server);
      Finish(server, Fail(ErrorCode::kUnsupported, name + " takes too long to read"));
    } else {
      return;
    }
    Send(server);
  }
  Send(server);
  if (!server.reading.has_value() && now_ns - server.since_ns > kFileReaderIdleNs) Stop(server);
}

void FileReader::Finish(Server& server, Status result) {
  Job& job = jobs_.at(*std::exchange(server.reading, std::nullopt));
  job.done_ns = MonotonicNow();
  if (struct stat status{}; ::fstat(job.answer.get(), &status) == 0)
    job.kept_bytes = int64_t{status.st_blocks} * 512;  // its unit, by stat(2)
  job.result = std::move(result);
  server.since_ns = MonotonicNow();
  ++answered_;
}

// Sends the oldest request of the user whose turn it is.
void FileReader::Send(Server& server) {
  while (!server.reading.has_value() && !server.queues.empty()) {
    auto queue = server.queues.upper_bound(server.last_user);
    if (queue == server.queues.end()) queue = server.queues.begin();
    server.last_user = queue->first;
    if (queue->second.empty()) {
      server.queues.erase(queue);
      continue;
    }
    server.reading = queue->second.front();
    queue->second.pop_front();
    server.since_ns = MonotonicNow();
    Job& job = jobs_.at(*server.reading);
    // The message borrows the descriptors: sending duplicates them.
    FileRequest message{.kind = job.request.kind,
                        .name = job.request.name,
                        .file = Fd(job.files.file.get()),
                        .debug_file = Fd(job.files.debug_file.get()),
                        .answer = Fd(job.answer.get())};
    const auto deliver = [&]() -> Status {
      if (server.pid == 0) TRY(Start(server));
      return SendFileRequest(server.socket.get(), message, Wait::kNo);
    };
    // A server that had ended before was not killed by this file: start another one.
    const bool was_running = server.pid != 0;
    Status sent = deliver();
    if (!sent.has_value() && was_running) {
      Stop(server);
      sent = deliver();
    }
    for (Fd* lent : {&message.file, &message.debug_file, &message.answer}) (void)lent->release();
    if (sent.has_value()) return;
    LogWarn("{} is not read: {}", job.request.name, sent.error().message);
    Stop(server);  // the next request starts another one
    Finish(server, std::move(sent));
  }
}

bool FileReader::idle() const {
  return std::ranges::none_of(servers_, [](const Server& server) { return server.reading.has_value(); });
}

void FileReader::Wait(int timeout_ms) const {
  std::vector<pollfd> fds;
  for (const Server& server : servers_)
    if (server.reading.has_value())
      fds.push_back({.fd = server.socket.get(), .events = POLLIN, .revents = 0});
  ::poll(fds.data(), fds.size(), timeout_ms);
}

Status FileReader::Start(Server& server) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    return Fail(ErrnoError(errno, "make a socket"));
  Fd ours(ends[0]), theirs(ends[1]);
  ASSIGN_OR_RETURN(server.pid, StartServer(options_.command, theirs.get()));
  server.socket = std::move(ours);
  return {};
}

void FileReader::Stop(Server& server) {
  server.socket.Close();
  if (server.pid == 0) return;
  ::kill(server.pid, SIGKILL);
  ::waitpid(std::exchange(server.pid, 0), nullptr, 0);
}

}  // namespace gpusonde::symbols
