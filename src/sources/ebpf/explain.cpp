// SPDX-License-Identifier: Apache-2.0
#include "sources/ebpf/explain.h"

#include <fmt/format.h>
#include <unistd.h>

#include "sources/refusal.h"

namespace gpusonde::ebpf {

Error Explain(int error_number, std::string_view what) {
  Error error = sources::KernelError(error_number, what);
  if (error.code != ErrorCode::kPermissionDenied && ::access("/sys/kernel/btf/vmlinux", R_OK) != 0)
    return {ErrorCode::kUnsupported,
            fmt::format(
                "{}: this kernel has no BTF (/sys/kernel/btf/vmlinux); gpusonde needs Linux 5.15 or newer "
                "built with CONFIG_DEBUG_INFO_BTF",
                what)};
  return error;
}

}  // namespace gpusonde::ebpf
