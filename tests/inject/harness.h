// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "base/testing/temp_folder.h"
#include "sources/cupti/gpu_events.h"

// The client (client.cpp), and the agent's end of its channel.
namespace gpusonde::cupti {

// Skips a test whose outcome depends on how fast the program and its library are.
#ifdef __SANITIZE_THREAD__
#define GPUSONDE_NOT_UNDER_TSAN(reason) GTEST_SKIP() << "under ThreadSanitizer " reason
#else
#define GPUSONDE_NOT_UNDER_TSAN(reason) static_cast<void>(reason)
#endif

// The received events, with copies of their texts.
struct Received {
  struct KernelOf : Kernel {
    std::string kernel_name;
    uint32_t session = 0;
  };
  struct CallOf : Call {
    std::string call_name;
    int32_t tid = 0;
    uint32_t session = 0;
    std::vector<uint64_t> stack;
    bool stack_taken = false;
  };
  struct Sum {
    uint64_t count = 0, untimed = 0, total_ns = 0, bytes = 0;
    bool operator==(const Sum&) const = default;
  };

  std::set<int32_t> pids;
  struct DeviceOf : Device {
    std::string name;
  };
  std::vector<DeviceOf> devices;
  std::vector<SessionBegin> begins;
  std::vector<SessionEnd> ends;
  std::vector<KernelOf> kernels;
  std::vector<Memcpy> copies;
  std::vector<Memset> sets;
  std::vector<Sync> syncs;
  std::vector<CallOf> calls;
  std::vector<GraphNode> nodes;
  std::vector<std::string> ranges;
  std::vector<std::string> holders;
  std::vector<Overhead> overheads;
  std::vector<Communicator> communicators;
  std::vector<Collective> collectives;
  // The newest totals by session, kind and name.
  std::map<std::tuple<uint32_t, Total::Of, std::string>, Sum> totals;
  // The same for what ran before the session was joined and was not received as a record.
  std::map<std::tuple<uint32_t, Total::Of, std::string>, Sum> earlier_totals;

  void operator()(const Event& event);
  Sum TotalOf(Total::Of of, const std::string& name) const;
};

inline void Received::operator()(const Event& event) {
  pids.insert(event.pid);
  if (const auto* begin = std::get_if<SessionBegin>(&event.what)) begins.push_back(*begin);
  if (const auto* end = std::get_if<SessionEnd>(&event.what)) ends.push_back(*end);
  if (const auto* device = std::get_if<Device>(&event.what))
    devices.push_back({*device, std::string(device->name)});
  if (const auto* kernel = std::get_if<Kernel>(&event.what))
    kernels.push_back({*kernel, std::string(kernel->name), event.session});
  if (const auto* copy = std::get_if<Memcpy>(&event.what)) copies.push_back(*copy);
  if (const auto* set = std::get_if<Memset>(&event.what)) sets.push_back(*set);
  if (const auto* sync = std::get_if<Sync>(&event.what)) syncs.push_back(*sync);
  if (const auto* call = std::get_if<Call>(&event.what))
    calls.push_back({*call,
                     std::string(call->name),
                     event.tid,
                     event.session,
                     {event.stack.user().begin(), event.stack.user().end()},
                     event.stack_taken});
  if (const auto* node = std::get_if<GraphNode>(&event.what)) nodes.push_back(*node);
  if (const auto* range = std::get_if<Range>(&event.what)) ranges.emplace_back(range->text);
  if (const auto* foreign = std::get_if<Foreign>(&event.what)) holders.emplace_back(foreign->holder);
  if (const auto* joined = std::get_if<Communicator>(&event.what)) communicators.push_back(*joined);
  if (const auto* collective = std::get_if<Collective>(&event.what)) collectives.push_back(*collective);
  if (const auto* overhead = std::get_if<Overhead>(&event.what)) overheads.push_back(*overhead);
  if (const auto* total = std::get_if<Total>(&event.what)) {
    Sum sum{total->count, total->untimed, total->total_ns, total->bytes};
    // A snapshot's totals include the records that were held for it.
    if (total->joined && total->of == Total::Of::kKernel)
      sum.count -= static_cast<uint64_t>(std::ranges::count_if(kernels, [&](const KernelOf& kernel) {
        return kernel.session == event.session && kernel.kernel_name == total->name;
      }));
    (total->joined ? earlier_totals : totals)[{event.session, total->of, std::string(total->name)}] = sum;
  }
}

inline Received::Sum Received::TotalOf(Total::Of of, const std::string& name) const {
  Sum sum;
  for (const auto& [key, total] : totals) {
    if (std::get<1>(key) != of || std::get<2>(key) != name) continue;
    sum.count += total.count;
    sum.untimed += total.untimed;
    sum.total_ns += total.total_ns;
    sum.bytes += total.bytes;
  }
  return sum;
}

// The simulated GPU of this test program's clients.
class Machine {
 public:
  static const std::string& Name() {
    static const Machine machine;
    return machine.name_;
  }

 private:
  Machine() : name_("gpusonde-test-" + std::to_string(::getpid())) {}
  ~Machine() {
    std::error_code ignored;
    for (const auto& file : std::filesystem::directory_iterator("/dev/shm", ignored))
      if (file.path().filename().string().starts_with(name_ + "."))
        std::filesystem::remove(file.path(), ignored);
  }
  std::string name_;
};

// The inject library of this test program's clients. Agents profile all programs with a library of the same
// content, so theirs is another, and tests of other programs can run meanwhile.
class OwnLibrary {
 public:
  static const std::string& Path() {
    static const OwnLibrary library;
    return library.path_;
  }

 private:
  OwnLibrary() : path_(folder_ / "libgpusonde-inject.so") {
    std::filesystem::copy_file(GPUSONDE_INJECT_LIBRARY, path_);
    std::ofstream(path_, std::ios::app) << ::getpid();
  }
  TempFolder folder_;
  std::string path_;
};

// A client process (client.cpp) with the library injected and a simulated GPU.
class Client {
 public:
  // `variables`: "NAME=value" for its environment, where the first of a name counts. `before_exec` is called
  // before the client is executed.
  Client(const std::vector<std::string>& steps, std::vector<std::string> variables,
         const std::function<void(int32_t pid)>& before_exec = {}) {
    std::vector<std::string> words = {GPUSONDE_INJECT_CLIENT};
    words.insert(words.end(), steps.begin(), steps.end());
    std::vector<char*> arguments;
    arguments.reserve(words.size() + 1);
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    variables.push_back("CUDA_INJECTION64_PATH=" + OwnLibrary::Path());
    variables.emplace_back("LD_LIBRARY_PATH=" GPUSONDE_SIMGPU_FOLDER);
    variables.push_back("SIMGPU_MACHINE=" + Machine::Name());
    if (const char* options = ::getenv("TSAN_OPTIONS"); options != nullptr)
      variables.push_back(std::string("TSAN_OPTIONS=") + options);
    std::vector<char*> environment;
    environment.reserve(variables.size() + 1);
    for (std::string& variable : variables) environment.push_back(variable.data());
    environment.push_back(nullptr);
    int output[2];
    int go[2];
    EXPECT_EQ(::pipe2(output, O_CLOEXEC), 0);
    EXPECT_EQ(::pipe2(go, O_CLOEXEC), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      char byte = 0;
      if (::read(go[0], &byte, 1) != 1) ::_exit(126);
      ::dup2(output[1], STDOUT_FILENO);
      ::execve(arguments[0], arguments.data(), environment.data());
      ::_exit(127);
    }
    if (before_exec) before_exec(pid_);
    EXPECT_EQ(::write(go[1], "g", 1), 1);
    ::close(go[0]);
    ::close(go[1]);
    ::close(output[1]);
    output_ = Fd(output[0]);
  }

  int32_t pid() const { return pid_; }

  // Ends its step `rate`, which it must be at.
  void EndRate() const { ::kill(pid_, SIGUSR1); }

  // Waits until it exits, draining its events meanwhile and after. Returns its exit status, or 128 + its
  // signal.
  int Finish(GpuEvents& events, Received& received) {
    int status = 0;
    for (;;) {
      EXPECT_TRUE(events.Drain(sources::VisitOnly([&](const Event& event) { received(event); })).has_value());
      if (::waitpid(pid_, &status, WNOHANG) == pid_) break;
      pollfd wait{.fd = events.wake_fds().front(), .events = POLLIN, .revents = 0};
      ::poll(&wait, 1, 10);
    }
    EXPECT_TRUE(events.Drain(sources::VisitOnly([&](const Event& event) { received(event); })).has_value());
    char text[4096];
    for (ssize_t got = 0; (got = ::read(output_.get(), text, sizeof text)) > 0;)
      printed_.append(text, static_cast<size_t>(got));
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  // Drains its events for this long.
  void Drain(GpuEvents& events, Received& received, std::chrono::milliseconds duration) {
    const auto end = std::chrono::steady_clock::now() + duration;
    while (std::chrono::steady_clock::now() < end) {
      EXPECT_TRUE(events.Drain(sources::VisitOnly([&](const Event& event) { received(event); })).has_value());
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }

  const std::string& printed() const { return printed_; }

 private:
  pid_t pid_ = -1;
  Fd output_;
  std::string printed_;
};

inline GpuEvents::Options SocketsOnly() { return {.library_path = OwnLibrary::Path()}; }

struct Outcome {
  Received received;
  int status = -1;
  std::string printed;
  model::DropCounts drops;
};

// Runs the client with a socket. `variables` are added to its environment, such as simgpu's settings.
inline Outcome RunWithSocket(const std::vector<std::string>& steps, std::vector<std::string> variables = {}) {
  Outcome outcome;
  Result<GpuEvents> events = GpuEvents::Create(SocketsOnly(), nullptr);
  EXPECT_TRUE(events.has_value());
  Result<GpuEvents::Inheritance> inheritance = events->MakeSocket();
  EXPECT_TRUE(inheritance.has_value());
  variables.push_back(inheritance->environment);
  Client client(steps, std::move(variables));
  inheritance->fd.Close();
  outcome.status = client.Finish(*events, outcome.received);
  outcome.printed = client.printed();
  events->Forget(client.pid());
  outcome.drops = events->DrainDrops();
  return outcome;
}

inline void ExpectNothingLost(const model::DropCounts& drops) {
  for (const model::DropInfo& info : model::kDropReasons) EXPECT_EQ(drops.Of(info.reason), 0) << info.name;
}

}  // namespace gpusonde::cupti
