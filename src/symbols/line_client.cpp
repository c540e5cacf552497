// SPDX-License-Identifier: Apache-2.0
#include "symbols/line_client.h"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <utility>

#include "base/log.h"
#include "symbols/server_process.h"

namespace gpusonde::symbols {
namespace {

constexpr size_t kFewQuestions = 20;  // a program that starts asks more
constexpr size_t kKeptAtOnce = 256;   // the cache reads all of a file before it adds to it

// Memory of a file's lines, with the nodes of the map and the map itself.
size_t MemoryOfLines(const LineCache::Lines& lines) {
  constexpr size_t kMapBytes = 128, kEntryBytes = 64;
  size_t bytes = kMapBytes;
  for (const auto& [offset, frames] : lines) {
    bytes += kEntryBytes + frames.capacity() * sizeof(SourceFrame);
    for (const SourceFrame& frame : frames) bytes += frame.function.capacity() + frame.file.capacity();
  }
  return bytes;
}

// CPU time that a child process has taken; 0 if it is unknown.
int64_t CpuTimeOf(pid_t pid) {
  clockid_t clock{};
  timespec time{};
  if (::clock_getcpuclockid(pid, &clock) != 0 || ::clock_gettime(clock, &time) != 0) return 0;
  return int64_t{time.tv_sec} * kNanosPerSecond + time.tv_nsec;
}

}  // namespace

bool LineClient::Ask(const Id128& file, int32_t pid, const std::string& path, uint64_t offset,
                     const std::function<Result<Fd>()>& open) {
  if (options_.command.empty()) return false;
  if (files_.size() >= kMaxFiles && !numbers_.contains(file)) ForgetFiles();
  const auto [number, is_new] = numbers_.try_emplace(file, next_number_);
  if (is_new)
    files_[next_number_++] = {
        .id = file, .pid = pid, .path = path, .fd = {}, .known = {}, .found = {}, .offsets = {}};
  File& asked = files_.at(number->second);
  asked_ns_ = MonotonicNow();
  if (!asked.known.has_value()) {
    LineCache::Lines lines = cache_.Load(file);
    const size_t bytes = MemoryOfLines(lines);
    if (loaded_bytes_ + bytes > kMaxLoadedBytes) DropLoaded();
    asked.known = std::move(lines);
    loaded_bytes_ += bytes;
  }
  if (const auto lines = asked.known->find(offset); lines != asked.known->end()) {
    ready_.push_back({.file = file, .offset = offset, .frames = lines->second});
    return true;
  }
  if (asked.hopeless) return false;
  if (asked.offsets.empty()) {
    if (open_files_ >= kMaxOpenFiles) return false;  // descriptors are worth more than lines
    Result<Fd> fd = open();
    if (!fd.has_value()) {
      asked.hopeless = is_new;
      return false;
    }
    asked.fd = std::move(*fd);
    asked.pid = pid;
    ++open_files_;
    queue_.push_back(number->second);
  }
  asked.offsets.push_back(offset);
  return true;
}

size_t LineClient::waiting() const {
  size_t count = ready_.size() + (asked_.has_value() ? asked_->answers_due : 0);
  for (const uint32_t number : queue_) count += files_.at(number).offsets.size();
  return count;
}

void LineClient::Exchange(const std::function<void(const Answer&)>& visit) {
  for (const Answer& answer : std::exchange(ready_, {})) visit(answer);
  while (asked_.has_value()) {
    Result<std::optional<LineAnswer>> received = ReceiveAnswer(socket_.get(), Wait::kNo);
    if (!received.has_value() && received.error().code == ErrorCode::kUnavailable) {
      if (MonotonicNow() - received_ns_ < options_.timeout_ns) return;
      LogWarn("the lines of {} take too long to find", files_.at(asked_->file).path);
      return GiveUp(LineAnswer::Kind::kUnreadable, visit);
    }
    if (!received.has_value() || !received->has_value() || (*received)->file != asked_->file) {
      LogWarn("the debug-info reader died while reading {}", files_.at(asked_->file).path);
      return GiveUp(LineAnswer::Kind::kUnreadable, visit);
    }
    LineAnswer& answer = **received;
    received_ns_ = MonotonicNow();
    if (answer.kind != LineAnswer::Kind::kFrames) {
      File& file = files_.at(asked_->file);
      file.hopeless = true;
      Close(file);
      std::erase(queue_, asked_->file);
      asked_->answers_due = 0;
    }
    const Id128 id = files_.at(answer.file).id;
    LineCache::Found& found = files_.at(answer.file).found;
    if (answer.kind == LineAnswer::Kind::kFrames) found.emplace_back(answer.offset, answer.frames);
    if (found.size() >= kKeptAtOnce) cache_.Add(id, std::exchange(found, {}));
    visit({id, answer.kind, answer.offset, std::move(answer.frames)});
    if (asked_->answers_due <= 1)
      asked_.reset();
    else
      --asked_->answers_due;
    if (!asked_.has_value()) Send();
  }
  Send();
  if (!idle() || MonotonicNow() - std::max(asked_ns_, received_ns_) < options_.idle_ns) return;
  if (server_pid_ != 0) paused_until_ns_ = MonotonicNow() + options_.pause_ns;
  Stop();
  Keep();
  DropLoaded();
}

void LineClient::Send() {
  if (asked_.has_value() || queue_.empty() || !HasCpuTime()) return;
  if (server_pid_ == 0) {
    if (MonotonicNow() < paused_until_ns_ && waiting() <= kFewQuestions) return;
    if (const Status started = Start(); !started.has_value()) {
      LogWarn("source lines are not available: {}", started.error().message);
      options_.command.clear();
      queue_.clear();
      for (auto& [number, file] : files_) Close(file);
      return;
    }
  }
  const uint32_t number = queue_.front();
  File& file = files_.at(number);
  const size_t count = std::min(file.offsets.size(), kMaxOffsetsPerRequest);
  LineRequest request{.file = number, .pid = file.pid, .path = file.path, .offsets = {}, .fd = {}};
  request.offsets.assign(file.offsets.begin(), file.offsets.begin() + static_cast<ptrdiff_t>(count));
  // Lent: sending duplicates it.
  request.fd = Fd(file.fd.get());
  const Status sent = SendRequest(socket_.get(), request, Wait::kNo);
  (void)request.fd.release();
  if (!sent.has_value()) {
    if (sent.error().code != ErrorCode::kUnavailable) Stop();  // started again for the next
    return;
  }
  file.offsets.erase(file.offsets.begin(), file.offsets.begin() + static_cast<ptrdiff_t>(count));
  queue_.pop_front();
  if (file.offsets.empty())
    Close(file);
  else
    queue_.push_back(number);
  asked_ = {.file = number, .answers_due = count};
  received_ns_ = MonotonicNow();
}

bool LineClient::HasCpuTime() {
  ChargeServer();
  const int64_t now_ns = MonotonicNow();
  const auto passed_ns = static_cast<double>(now_ns - std::exchange(regained_ns_, now_ns));
  charged_ns_ = std::max(charged_ns_ - passed_ns * options_.cpu_share, 0.0);
  return charged_ns_ < static_cast<double>(options_.burst_ns);
}

void LineClient::ChargeServer() {
  if (server_pid_ == 0) return;
  const int64_t cpu_ns = std::max(CpuTimeOf(server_pid_), server_cpu_ns_);
  charged_ns_ += static_cast<double>(cpu_ns - std::exchange(server_cpu_ns_, cpu_ns));
}

// Forgets the requests that wait.
void LineClient::Close(File& file) {
  file.offsets = {};
  if (!file.fd.valid()) return;
  file.fd.Close();
  --open_files_;
}

void LineClient::GiveUp(LineAnswer::Kind kind, const std::function<void(const Answer&)>& visit) {
  File& file = files_.at(asked_->file);
  file.hopeless = true;
  Close(file);
  std::erase(queue_, asked_->file);
  asked_.reset();
  Stop();
  visit({file.id, kind, 0, {}});
}

void LineClient::Keep() {
  for (auto& [number, file] : files_) cache_.Add(file.id, std::exchange(file.found, {}));
}

// Those about which a request waits, or is being answered, stay.
void LineClient::ForgetFiles() {
  DropLoaded();
  std::erase_if(files_, [this](auto& known) {
    auto& [number, file] = known;
    if (file.fd.valid() || (asked_.has_value() && asked_->file == number)) return false;
    cache_.Add(file.id, file.found);
    numbers_.erase(file.id);
    return true;
  });
}

void LineClient::DropLoaded() {
  for (auto& [number, file] : files_) file.known.reset();
  loaded_bytes_ = 0;
}

void LineClient::Wait(int timeout_ms) {
  paused_until_ns_ = 0;
  charged_ns_ = 0;
  pollfd fd{.fd = socket_.get(), .events = POLLIN, .revents = 0};
  ::poll(&fd, socket_.valid() ? 1 : 0, timeout_ms);
}

Status LineClient::Start() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    return Fail(ErrnoError(errno, "make a socket"));
  Fd ours(ends[0]), theirs(ends[1]);
  ASSIGN_OR_RETURN(server_pid_, StartServer(options_.command, theirs.get()));
  socket_ = std::move(ours);
  return {};
}

void LineClient::Stop() {
  socket_.Close();
  if (server_pid_ == 0) return;
  ChargeServer();
  server_cpu_ns_ = 0;
  ::kill(server_pid_, SIGKILL);
  ::waitpid(std::exchange(server_pid_, 0), nullptr, 0);
}

}  // namespace gpusonde::symbols
