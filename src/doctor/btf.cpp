// SPDX-License-Identifier: Apache-2.0
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <fmt/format.h>

#include <cerrno>
#include <memory>

#include "base/error.h"
#include "doctor/advice.h"
#include "doctor/probes.h"

namespace gpusonde::doctor {
namespace {

struct Free {
  void operator()(btf* types) const { ::btf__free(types); }
};

}  // namespace

// The eBPF programs find the fields of the running kernel's structs through its BTF.
Finding ProbeBtf(const Settings&) {
  const std::unique_ptr<btf, Free> types(::btf__load_vmlinux_btf());
  if (types == nullptr && errno == ESRCH)  // as libbpf says it
    return Fails("the kernel's types (/sys/kernel/btf/vmlinux) are missing, or the file is empty",
                 std::string(kNeedsKernel));
  if (types == nullptr)
    return Fails(ErrnoError(errno, "read the kernel's types (/sys/kernel/btf/vmlinux)").message,
                 std::string(kNeedsKernel));
  if (::btf__find_by_name_kind(types.get(), "task_struct", BTF_KIND_STRUCT) < 0)
    return Fails("the kernel's types (/sys/kernel/btf/vmlinux) lack task_struct", std::string(kNeedsKernel));
  return Works(fmt::format("{} types of the running kernel", ::btf__type_cnt(types.get())));
}

}  // namespace gpusonde::doctor
