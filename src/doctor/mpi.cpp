// SPDX-License-Identifier: Apache-2.0
#include "doctor/probes.h"
#include "doctor/shared_library.h"

namespace gpusonde::doctor {

Finding ProbeMpi(const Settings&) {
  const FoundLibrary mpi = FindLibrary({"libmpi.so.40"}, "MPI_Init_thread");
  if (mpi.path.empty())
    return Fails("OpenMPI's library does not load: " + mpi.error,
                 mpi.error.contains("GLIBC_")
                     ? "this machine's C library is newer than the package's: build gpusonde here to analyse "
                       "over several processes"
                     : "install OpenMPI (Debian: openmpi-bin)");
  return Works("OpenMPI's library is " + mpi.path);
}

}  // namespace gpusonde::doctor
