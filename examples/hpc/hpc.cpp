// SPDX-License-Identifier: Apache-2.0
//
// The structure of a stencil code on many nodes, on one GPU: every step computes the boundary, exchanges it
// through the host while the interior computes, and ends with a reduction that the host waits for.
//
//   boundary ─▶ pack ─▶ copy out ─▶ exchange (host) ─▶ copy in ─▶ unpack ─┐
//   interior ─────────────────────────────────────────────────────────────┴▶ reduce ─▶ copy out
//
// The kernels take a given time and compute nothing; the host's exchange really processes the halo.
#include <fmt/format.h>
#include <getopt.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cuda.h"

namespace hpc {
namespace {

using Clock = std::chrono::steady_clock;

// A kernel that only takes time: the first thread of the grid waits, all others exit at once. A simulated GPU
// reads the comment, a real one runs the code.
constexpr const char* kKernel = R"(
// simgpu: duration_ns=param0
.visible .entry {0}(.param .u64 duration_ns)
{{
  .reg .pred %p;
  .reg .u32 %r<3>;
  .reg .u64 %t<3>;
  mov.u32 %r0, %ctaid.x;
  mov.u32 %r1, %tid.x;
  or.b32 %r2, %r0, %r1;
  setp.ne.u32 %p, %r2, 0;
  @%p ret;
  ld.param.u64 %t0, [duration_ns];
  mov.u64 %t1, %globaltimer;
  add.u64 %t1, %t1, %t0;
WAIT:
  mov.u64 %t2, %globaltimer;
  setp.lt.u64 %p, %t2, %t1;
  @%p bra WAIT;
  ret;
}}
)";

Cuda::Kernel MakeKernel(const Cuda& cuda, const char* name) {
  const std::string ptx =
      ".version 7.0\n.target sm_70\n.address_size 64\n" + fmt::format(fmt::runtime(kKernel), name);
  return cuda.Load(ptx.c_str(), name);
}

volatile std::sig_atomic_t interrupted = 0;

struct Flags {
  double seconds = 10;
  int steps = 0;  // 0: by time
  size_t halo_bytes = 8 << 20;
  std::string step_log;
};

class Stencil {
 public:
  Stencil(const Cuda& cuda, size_t halo_bytes)
      : cuda_(cuda),
        halo_bytes_(halo_bytes),
        boundary_(MakeKernel(cuda, "_Z16boundary_stencilm")),
        interior_(MakeKernel(cuda, "_Z16interior_stencilm")),
        pack_(MakeKernel(cuda, "_Z9pack_halom")),
        unpack_(MakeKernel(cuda, "_Z11unpack_halom")),
        reduce_(MakeKernel(cuda, "_Z13residual_normm")),
        interior_stream_(cuda.MakeStream()),
        halo_stream_(cuda.MakeStream()),
        halo_done_(cuda.MakeEvent()),
        halo_(cuda.Allocate(halo_bytes)),
        residual_(cuda.Allocate(sizeof(double))),
        host_halo_(static_cast<uint32_t*>(cuda.AllocatePinned(halo_bytes))),
        host_residual_(static_cast<double*>(cuda.AllocatePinned(sizeof(double)))) {
    cuda_.Clear(halo_, halo_bytes_, halo_stream_);
  }

  [[gnu::noinline]] void Step() {
    LaunchInterior();
    ComputeBoundary();
    ExchangeHalo();
    Converge();
  }
  uint32_t checksum() const { return checksum_; }
  Clock::duration waited() const { return waited_; }  // for the GPU, by all steps

 private:
  [[gnu::noinline]] void LaunchInterior() {
    cuda_.Clear(residual_, sizeof(double), interior_stream_);
    cuda_.Launch(interior_, 4096, 256, interior_stream_, 6'000'000);
  }
  [[gnu::noinline]] void ComputeBoundary() {
    cuda_.Launch(boundary_, 64, 256, halo_stream_, 400'000);
    cuda_.Launch(pack_, 32, 256, halo_stream_, 150'000);
    cuda_.CopyToHost(host_halo_, halo_, halo_bytes_, halo_stream_);
    Await(halo_stream_);
  }
  // Stands for the network: reads and changes every word of the halo.
  [[gnu::noinline]] void ExchangeHalo() {
    for (size_t i = 0; i < halo_bytes_ / sizeof(uint32_t); ++i) {
      checksum_ = (checksum_ ^ host_halo_[i]) * 0x01000193U;
      host_halo_[i] += checksum_ & 0xFFU;
    }
  }
  [[gnu::noinline]] void Converge() {
    cuda_.CopyToDevice(halo_, host_halo_, halo_bytes_, halo_stream_);
    cuda_.Launch(unpack_, 32, 256, halo_stream_, 150'000);
    cuda_.Record(halo_done_, halo_stream_);
    cuda_.Wait(interior_stream_, halo_done_);
    cuda_.Launch(reduce_, 256, 256, interior_stream_, 80'000);
    cuda_.CopyToHost(host_residual_, residual_, sizeof(double), interior_stream_);
    Await(interior_stream_);
  }
  void Await(const Cuda::Stream& stream) {
    const auto begin = Clock::now();
    cuda_.Synchronize(stream);
    waited_ += Clock::now() - begin;
  }

  const Cuda& cuda_;
  size_t halo_bytes_;
  Cuda::Kernel boundary_, interior_, pack_, unpack_, reduce_;
  Cuda::Stream interior_stream_, halo_stream_;
  Cuda::Event halo_done_;
  Cuda::Memory halo_, residual_;
  uint32_t* host_halo_;
  double* host_residual_;
  uint32_t checksum_ = 2166136261U;
  Clock::duration waited_{};
};

// Nothing if the arguments are invalid.
std::optional<Flags> ReadFlags(int argc, char** argv) {
  constexpr std::array kOptions = {option{"seconds", required_argument, nullptr, 's'},
                                   option{"steps", required_argument, nullptr, 'n'},
                                   option{"halo-mb", required_argument, nullptr, 'h'},
                                   option{"step-log", required_argument, nullptr, 'l'}, option{}};
  Flags flags;
  int letter = 0;
  while ((letter = ::getopt_long(argc, argv, "", kOptions.data(), nullptr)) != -1) {
    if (letter == 's')
      flags.seconds = std::strtod(optarg, nullptr);
    else if (letter == 'n')
      flags.steps = static_cast<int>(std::strtol(optarg, nullptr, 10));
    else if (letter == 'h')
      flags.halo_bytes = size_t{std::strtoul(optarg, nullptr, 10)} << 20;
    else if (letter == 'l')
      flags.step_log = optarg;
    else
      return std::nullopt;
  }
  if (optind != argc || !(flags.seconds > 0) || flags.steps < 0 || flags.halo_bytes == 0 ||
      flags.halo_bytes > size_t{1} << 30)
    return std::nullopt;
  return flags;
}

// One line per step: its begin and end (CLOCK_MONOTONIC, ns), and ns of waiting for data, for disks (both 0
// here) and for the GPU.
class StepLog {
 public:
  // Null without a path: nothing is logged. False if the file can't be written.
  bool Open(const std::string& path) {
    if (path.empty()) return true;
    file_.reset(std::fopen(path.c_str(), "w"));
    return file_ != nullptr && std::setvbuf(file_.get(), nullptr, _IOLBF, BUFSIZ) == 0;
  }
  void Add(Clock::time_point begin, Clock::time_point end, Clock::duration waited) {
    if (file_ != nullptr)
      fmt::print(file_.get(), "{} {} 0 0 {}\n", begin.time_since_epoch().count(),
                 end.time_since_epoch().count(), waited.count());
  }

 private:
  struct CloseFile {
    void operator()(std::FILE* file) const { (void)std::fclose(file); }
  };
  std::unique_ptr<std::FILE, CloseFile> file_;
};

int Run(const Flags& flags) {
  StepLog log;
  if (!log.Open(flags.step_log)) {
    fmt::print(stderr, "hpc: can't write {}\n", flags.step_log);
    return 1;
  }
  const auto cuda = Cuda::Open();
  if (!cuda.has_value()) {
    fmt::print(stderr, "hpc: {}\n", cuda.error());
    return 1;
  }
  fmt::print("on {}\n", cuda->device_name());
  Stencil stencil(*cuda, flags.halo_bytes);
  std::signal(SIGINT, [](int) { interrupted = 1; });
  const auto begin = Clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
  int steps = 0;
  while (interrupted == 0 && (flags.steps > 0 ? steps < flags.steps : seconds() < flags.seconds)) {
    const auto step_begin = Clock::now();
    const auto waited = stencil.waited();
    stencil.Step();
    log.Add(step_begin, Clock::now(), stencil.waited() - waited);
    ++steps;
  }
  fmt::print("{} steps; {:.2f} ms a step; checksum {:08x}\n", steps, 1e3 * seconds() / std::max(steps, 1),
             stencil.checksum());
  return interrupted == 0 ? 0 : 130;  // the shell's status for Ctrl-C
}

}  // namespace
}  // namespace hpc

int main(int argc, char** argv) {
  const auto flags = hpc::ReadFlags(argc, argv);
  if (!flags.has_value()) {
    fmt::print(stderr, "usage: hpc [--seconds S] [--steps N] [--halo-mb MB] [--step-log FILE]\n");
    return 2;
  }
  return hpc::Run(*flags);
}
