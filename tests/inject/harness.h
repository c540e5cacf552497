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
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/testing/temp_folder.h"
#include "received.h"
#include "sources/cupti/gpu_events.h"

// The client (client.cpp), and the agent's end of its channel.
namespace gpusonde::cupti {

// Skips a test whose outcome depends on how fast the program and its library are.
#ifdef __SANITIZE_THREAD__
#define GPUSONDE_NOT_UNDER_TSAN(reason) GTEST_SKIP() << "under ThreadSanitizer " reason
#else
#define GPUSONDE_NOT_UNDER_TSAN(reason) static_cast<void>(reason)
#endif

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

  // Ends its step `rate` or `steps`, which it must be at.
  void EndStep() const { ::kill(pid_, SIGUSR1); }

  // Waits until it exits, draining its events meanwhile and after. Returns its exit status, or 128 + its
  // signal.
  int Finish(GpuEvents& events, Received& received) {
    int status = 0;
    for (;;) {
      EXPECT_TRUE(received.Drain(events).has_value());
      if (::waitpid(pid_, &status, WNOHANG) == pid_) break;
      pollfd wait{.fd = events.wake_fds().front(), .events = POLLIN, .revents = 0};
      ::poll(&wait, 1, 10);
    }
    EXPECT_TRUE(received.Drain(events).has_value());
    char text[4096];
    for (ssize_t got = 0; (got = ::read(output_.get(), text, sizeof text)) > 0;)
      printed_.append(text, static_cast<size_t>(got));
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  // Drains its events for this long.
  void Drain(GpuEvents& events, Received& received, std::chrono::milliseconds duration) {
    const auto end = std::chrono::steady_clock::now() + duration;
    while (std::chrono::steady_clock::now() < end) {
      EXPECT_TRUE(received.Drain(events).has_value());
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
