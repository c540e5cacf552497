// SPDX-License-Identifier: Apache-2.0
#include "sources/ebpf/stack_tables.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fmt/format.h>

#include <cerrno>

#include "sources/ebpf/explain.h"

namespace gpusonde::ebpf {
namespace {

constexpr uint32_t kMaxProcesses = 16384;  // as in bpf/stack.h

}  // namespace

Result<StackTables> StackTables::Create() {
  Fd processes(::bpf_map_create(BPF_MAP_TYPE_HASH, "processes", sizeof(uint32_t), sizeof(gpusonde_process),
                                kMaxProcesses, nullptr));
  if (!processes.valid()) return Fail(Explain(errno, "make the kernel's table of processes"));
  return StackTables(std::move(processes));
}

Status StackTables::ShareWith(bpf_object* object) const {
  bpf_map* map = ::bpf_object__find_map_by_name(object, "processes");
  if (map == nullptr) return Fail(ErrorCode::kInternal, "a kernel program has no table of processes");
  if (const int error = ::bpf_map__reuse_fd(map, processes_.get()); error != 0)
    return Fail(Explain(-error, "share the kernel's table of processes"));
  return {};
}

Status StackTables::SetProcess(int32_t pid, const gpusonde_process& process) {
  const auto key = static_cast<uint32_t>(pid);
  if (::bpf_map_update_elem(processes_.get(), &key, &process, BPF_ANY) == 0) return {};
  if (errno == E2BIG)
    return Fail(ErrorCode::kOutOfSpace, fmt::format("more than {} processes are profiled", kMaxProcesses));
  return Fail(ErrnoError(errno, fmt::format("describe process {} to the kernel", pid)));
}

void StackTables::ForgetProcess(int32_t pid) {
  const auto key = static_cast<uint32_t>(pid);
  ::bpf_map_delete_elem(processes_.get(), &key);  // its end may have done so already
}

}  // namespace gpusonde::ebpf
