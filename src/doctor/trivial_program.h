// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bpf/libbpf.h>

#include "base/fd.h"

namespace gpusonde::doctor {

// Loads `return 0;` as a program of this type into the kernel; it is gone when the descriptor closes.
// `attach_btf_id` for types that attach by BTF, else 0. An invalid Fd on failure, with errno set.
Fd LoadTrivialProgram(bpf_prog_type type, bpf_attach_type attach_type, int attach_btf_id);

}  // namespace gpusonde::doctor
