// SPDX-License-Identifier: Apache-2.0
#include "doctor/trivial_program.h"

#include <bpf/bpf.h>
#include <linux/bpf.h>

#include <cerrno>
#include <iterator>

namespace gpusonde::doctor {

Fd LoadTrivialProgram(bpf_prog_type type, bpf_attach_type attach_type, int attach_btf_id) {
  constexpr bpf_insn kReturnZero[] = {
      {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .src_reg = 0, .off = 0, .imm = 0},
      {.code = BPF_JMP | BPF_EXIT, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = 0},
  };
  LIBBPF_OPTS(bpf_prog_load_opts, options);
  options.expected_attach_type = attach_type;
  options.attach_btf_id = static_cast<__u32>(attach_btf_id);
  const int fd =
      ::bpf_prog_load(type, "gpusonde_doctor", "Dual BSD/GPL", kReturnZero, std::size(kReturnZero), &options);
  if (fd < 0) {
    errno = -fd;
    return Fd();
  }
  return Fd(fd);
}

}  // namespace gpusonde::doctor
