// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace gpusonde::ebpf {

// Redirects libbpf's messages to our log, at level debug.
void SendLibbpfToLog();

}  // namespace gpusonde::ebpf
