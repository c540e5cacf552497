// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bpf/libbpf.h>

#include "base/fd.h"

namespace gpusonde::doctor {

// Loads `return 0;` as a program of this type; closing the descriptor unloads it. `attach_btf_id` is for
// types that attach by BTF, else 0. Returns an invalid Fd and sets errno on failure.
Fd LoadTrivialProgram(bpf_prog_type type, bpf_attach_type attach_type, int attach_btf_id);

}  // namespace gpusonde::doctor
