// SPDX-License-Identifier: Apache-2.0
// The command line of the simulated GPU: runs programs on it, shows its state, injects faults. README.md
// explains the commands.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

#include "simgpu/cuda/driver_api.h"
#include "simgpu/machine/machine.h"

namespace simgpu {
namespace {

constexpr const char* kUsage =
    "usage: simgpu run -- COMMAND…            with the simulated GPU's libraries first in LD_LIBRARY_PATH\n"
    "       simgpu env                        prints that folder\n"
    "       simgpu status                     devices and processes, as JSON\n"
    "       simgpu fault DEVICE NAME VALUE    xid CODE | ambient +°C | power-cap W | clock-limit SHARE |\n"
    "                                         pcie-width LANES | pcie-generation N | pcie-replays N |\n"
    "                                         ecc-corrected N | ecc-uncorrected N | stall SECONDS |\n"
    "                                         nvlink-replays N | nvlink-kib N | rows-corrected N |\n"
    "                                         rows-uncorrected N | rows-pending 1 | rows-failure 1 |\n"
    "                                         gpm-error CODE;\n"
    "                                         0 (clock-limit: 1) ends the fault\n"
    "       simgpu neighbour SECONDS SHARE    another process that keeps device 0 busy for that share of "
    "time\n"
    "       simgpu reset                      the next process creates a new machine\n";

int Usage() {
  std::fputs(kUsage, stderr);
  return 2;
}

int Fail(const std::string& what) {
  std::fprintf(stderr, "simgpu: %s\n", what.c_str());
  return 1;
}

// The folder of the simulated driver that this program itself uses.
std::string LibraryFolder() {
  Dl_info driver{};
  ::dladdr(reinterpret_cast<void*>(&cuInit), &driver);
  return std::filesystem::canonical(driver.dli_fname).parent_path().string();
}

int Run(std::span<char*> command) {
  if (!command.empty() && std::strcmp(command[0], "--") == 0) command = command.subspan(1);
  if (command.empty()) return Usage();
  std::string path = LibraryFolder();
  const char* before = std::getenv("LD_LIBRARY_PATH");
  if (before != nullptr && *before != '\0') path += std::string(":") + before;
  ::setenv("LD_LIBRARY_PATH", path.c_str(), 1);
  ::execvp(command[0], command.data());  // what main got ends with a null
  std::fprintf(stderr, "simgpu: can't run %s: %s\n", command[0], std::strerror(errno));
  return errno == ENOENT ? 127 : 126;
}

void PrintAccount(const Account& account) {
  std::printf(
      R"("kernels":%lld,"kernel_ns":%lld,"copies":%lld,"copy_ns":%lld,"copy_bytes":%lld,"memsets":%lld,"memset_ns":%lld})",
      static_cast<long long>(account.kernels), static_cast<long long>(account.kernel_ns),
      static_cast<long long>(account.copies), static_cast<long long>(account.copy_ns),
      static_cast<long long>(account.copy_bytes), static_cast<long long>(account.memsets),
      static_cast<long long>(account.memset_ns));
}

int Status(Machine& machine) {
  std::printf("{\"devices\":[");
  for (uint32_t i = 0; i < machine.device_count(); ++i) {
    Machine::Locked device(machine, i);
    const int64_t now_ns = NowNs();
    ForgetTheDead(*device, now_ns);
    const Sample& sample = device->LastSample(now_ns);
    std::printf(
        R"(%s{"name":"%s","pci_bus_id":"%s","utilization_percent":%.1f,"temperature_c":%.1f,"power_w":%.1f,"clock_share":%.3f,"used_bytes":%lld,"xids":%u,"total":{)",
        i == 0 ? "" : ",", device->model().name, device->model().pci_bus_id,
        100.0 * static_cast<double>(sample.busy_ns) / static_cast<double>(Device::kSamplePeriodNs),
        device->temperature_c(), device->power_w(), device->throttling().clock,
        static_cast<long long>(device->used_bytes()), device->xid_count());
    PrintAccount(device->total());
    std::printf(",\"processes\":[");
    bool first = true;
    for (uint32_t slot = 0; slot < Device::kProcesses; ++slot) {
      const Process& process = device->process(slot);
      if (process.pid == 0) continue;
      std::printf(R"(%s{"pid":%d,"memory_bytes":%lld,)", first ? "" : ",", process.pid,
                  static_cast<long long>(process.memory_bytes));
      PrintAccount(process.account);
      first = false;
    }
    std::printf("]}");
  }
  std::printf("]}\n");
  return 0;
}

struct FaultName {
  std::string_view name;
  void (*set)(Faults& faults, double value);
};

constexpr std::array kFaults = {
    FaultName{"ambient", [](Faults& faults, double value) { faults.ambient_c = value; }},
    FaultName{"clock-limit", [](Faults& faults, double value) { faults.clock_limit = value; }},
    FaultName{"ecc-corrected",
              [](Faults& faults, double value) { faults.ecc_corrected += static_cast<int64_t>(value); }},
    FaultName{"ecc-uncorrected",
              [](Faults& faults, double value) { faults.ecc_uncorrected += static_cast<int64_t>(value); }},
    FaultName{"gpm-error",
              [](Faults& faults, double value) { faults.gpm_error = static_cast<int32_t>(value); }},
    FaultName{"nvlink-kib",
              [](Faults& faults, double value) { faults.nvlink_kib += static_cast<int64_t>(value); }},
    FaultName{"nvlink-replays",
              [](Faults& faults, double value) { faults.nvlink_replays += static_cast<int64_t>(value); }},
    FaultName{"pcie-generation",
              [](Faults& faults, double value) { faults.pcie_generation = static_cast<int32_t>(value); }},
    FaultName{"pcie-replays",
              [](Faults& faults, double value) { faults.pcie_replays += static_cast<int64_t>(value); }},
    FaultName{"pcie-width",
              [](Faults& faults, double value) { faults.pcie_width = static_cast<int32_t>(value); }},
    FaultName{"power-cap", [](Faults& faults, double value) { faults.power_cap_w = value; }},
    FaultName{"rows-corrected",
              [](Faults& faults, double value) { faults.rows_corrected += static_cast<int64_t>(value); }},
    FaultName{"rows-failure", [](Faults& faults, double value) { faults.rows_failure = value > 0 ? 1 : 0; }},
    FaultName{"rows-pending", [](Faults& faults, double value) { faults.rows_pending = value > 0 ? 1 : 0; }},
    FaultName{"rows-uncorrected",
              [](Faults& faults, double value) { faults.rows_uncorrected += static_cast<int64_t>(value); }},
    FaultName{"stall",
              [](Faults& faults, double value) {
                faults.stalled_until_ns = NowNs() + static_cast<int64_t>(1e9 * value);
              }},
};

int Break(Machine& machine, std::span<char*> arguments) {
  if (arguments.size() != 3) return Usage();
  const auto ordinal = static_cast<uint32_t>(std::strtoul(arguments[0], nullptr, 10));
  const std::string_view name = arguments[1];
  char* end = nullptr;
  const double value = std::strtod(arguments[2], &end);
  if (*end != '\0' || value < 0 || value > 1e9) return Fail(std::string("not a value: ") + arguments[2]);
  if (ordinal >= machine.device_count()) return Fail(std::string("there is no device ") + arguments[0]);
  if (name == "xid") {
    machine.RaiseXid(ordinal, static_cast<int64_t>(value));
    return 0;
  }
  if (name == "clock-limit" && (value == 0 || value > 1))
    return Fail("clock-limit is a share: above 0, at most 1");
  for (const FaultName& fault : kFaults) {
    if (fault.name != name) continue;
    Machine::Locked device(machine, ordinal);
    device->Advance(NowNs());
    fault.set(device->faults(), value);
    return 0;
  }
  return Usage();
}

// Launches kernels of 1 ms on the whole device, as many as the share requires.
int Neighbour(std::span<char*> arguments) {
  if (arguments.size() != 2) return Usage();
  const double seconds = std::strtod(arguments[0], nullptr);
  const double share = std::strtod(arguments[1], nullptr);
  if (!(seconds > 0) || !(share > 0) || share > 1) return Usage();
  constexpr const char* kPtx =
      ".version 7.0\n.target sm_70\n.address_size 64\n"
      "// simgpu: duration_ns=1000000\n.visible .entry neighbour()\n{\n  ret;\n}\n";
  void* context = nullptr;
  void* module = nullptr;
  void* function = nullptr;
  if (cuInit(0) != 0 || cuDevicePrimaryCtxRetain(&context, 0) != 0 || cuCtxSetCurrent(context) != 0 ||
      cuModuleLoadData(&module, kPtx) != 0 || cuModuleGetFunction(&function, module, "neighbour") != 0)
    return Fail("can't initialise the simulated driver");
  const int64_t until_ns = NowNs() + static_cast<int64_t>(seconds * 1e9);
  const auto pause_us = static_cast<useconds_t>(1000 * (1 - share) / share);
  while (NowNs() < until_ns) {
    cuLaunchKernel(function, 1 << 20, 1, 1, 256, 1, 1, 0, nullptr, nullptr, nullptr);
    cuCtxSynchronize();
    ::usleep(pause_us);
  }
  return 0;
}

int Main(std::span<char*> arguments) {
  if (arguments.size() < 2) return Usage();
  const std::string_view command = arguments[1];
  const std::span<char*> rest = arguments.subspan(2);
  if (command == "run") return Run(rest);
  if (command == "--help") {
    std::fputs(kUsage, stdout);
    return 0;
  }
  if (command == "env" && rest.empty()) {
    std::printf("%s\n", LibraryFolder().c_str());
    return 0;
  }
  if (command == "neighbour") return Neighbour(rest);
  if (command == "reset" && rest.empty()) {
    std::error_code error;
    std::filesystem::remove(Machine::Path(), error);
    return error ? Fail("can't remove " + Machine::Path() + ": " + error.message()) : 0;
  }
  if (command != "status" && command != "fault") return Usage();
  Machine* machine = Machine::Get();
  if (machine == nullptr) return Fail(Machine::error());
  if (command == "fault") return Break(*machine, rest);
  return rest.empty() ? Status(*machine) : Usage();
}

}  // namespace
}  // namespace simgpu

int main(int argc, char** argv) { return simgpu::Main(std::span(argv, static_cast<size_t>(argc))); }
