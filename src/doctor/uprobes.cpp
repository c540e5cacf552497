// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <link.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <span>

#include "base/fd.h"
#include "base/program_file.h"
#include "doctor/advice.h"
#include "doctor/probes.h"

namespace gpusonde::doctor {
namespace {

constexpr const char* kTypeFile = "/sys/bus/event_source/devices/uprobe/type";

// The offset of this function in the program's file, or 0.
uint64_t OffsetOfOwnCode() {
  struct Search {
    uintptr_t address;
    uint64_t offset;
  } search{reinterpret_cast<uintptr_t>(&OffsetOfOwnCode), 0};
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* context) {
        auto& wanted = *static_cast<Search*>(context);
        for (const ElfW(Phdr) & segment : std::span(info->dlpi_phdr, info->dlpi_phnum)) {
          const uintptr_t start = info->dlpi_addr + segment.p_vaddr;
          if (segment.p_type == PT_LOAD && wanted.address >= start &&
              wanted.address < start + segment.p_filesz)
            wanted.offset = segment.p_offset + (wanted.address - start);
        }
        return 1;  // the program itself comes first
      },
      &search);
  return search.offset;
}

}  // namespace

// Places a disabled probe on a function of this program, for this process only.
Finding ProbeUprobes(const Settings&) {
  const Result<std::string> type = ReadFile(kTypeFile);
  if (!type.has_value()) return Fails(type.error().message, "use a kernel built with CONFIG_UPROBE_EVENTS");
  const Result<std::string> program = ProgramFile();
  if (!program.has_value()) return Fails(program.error().message, "mount /proc");
  perf_event_attr attributes{};
  attributes.size = sizeof attributes;
  std::from_chars(type->data(), type->data() + type->size(), attributes.type);
  attributes.uprobe_path = reinterpret_cast<uintptr_t>(program->c_str());
  attributes.probe_offset = OffsetOfOwnCode();
  attributes.disabled = 1;
  const Fd probe(
      static_cast<int>(::syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC)));
  if (!probe.valid()) {
    Finding finding = FailsWithErrno(errno, "place a probe on a function of this program");
    // CAP_PERFMON is not enough for these, tried on Linux 6.18.
    if (finding.what_to_do == kNeedsPrivileges)
      finding.what_to_do = "run as root, or give the program CAP_SYS_ADMIN";
    return finding;
  }
  return Works("placed a probe on a function of this program");
}

}  // namespace gpusonde::doctor
