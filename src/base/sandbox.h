// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

// What a process gives up before it reads strangers' bytes, so that code that corrupts its memory gains
// nothing.
namespace gpusonde {

struct SandboxGrants {
  std::vector<std::string>
      readable;                // files, and folders with all below them; those that aren't there don't matter
  std::string writable;        // a folder for temporary files; "": none
  bool serves = false;         // may listen for and accept TCP connections
  int64_t max_data_bytes = 0;  // private writable memory; 0: no limit
};

// Confines this process for the rest of its life: no other file is opened (Landlock, Linux 5.13 and later,
// where it is enabled), and no program is started, no connection made and no other process signalled
// (seccomp). It leaves no core file. Descriptors that are open stay usable. Call it while there is one
// thread. What the kernel lacks is left out.
void EnterSandbox(const SandboxGrants& grants);

// The version of Landlock's interface that the kernel has; 0: none.
int LandlockVersion();

// Whether the kernel takes seccomp filters.
bool HasSeccomp();

}  // namespace gpusonde
