// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

// A sandbox for processes that parse untrusted bytes, so that an exploit of memory corruption gains nothing.
namespace gpusonde {

struct SandboxGrants {
  std::vector<std::string>
      readable;          // files, and folders with all below them; those that aren't there don't matter
  std::string writable;  // a folder for temporary files; "": none
  bool serves = false;   // may listen for and accept TCP connections
  bool receives_files = false;  // may receive open files through sockets that it has
  int64_t max_data_bytes = 0;   // private writable memory; 0, or under a sanitizer: no limit
};

// Confines this process for the rest of its life: it can't open other files (Landlock, Linux 5.13 and later,
// if enabled), start programs, connect, or signal other processes (seccomp), and writes no core file. Open
// descriptors stay usable. Call it while there is a single thread. Protections that the kernel lacks are
// skipped.
void EnterSandbox(const SandboxGrants& grants);

// The kernel's Landlock ABI version; 0: none.
int LandlockVersion();

// Whether the kernel supports seccomp filters.
bool HasSeccomp();

}  // namespace gpusonde
