// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace gpusonde::ebpf {

// From now on libbpf says what it has to say in our log, at level debug, and nowhere else.
void SendLibbpfToLog();

}  // namespace gpusonde::ebpf
