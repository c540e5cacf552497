// SPDX-License-Identifier: Apache-2.0
#include "doctor/probes.h"
#include "doctor/shared_library.h"

namespace gpusonde::doctor {

Finding ProbeMpi(const Settings&) {
  const FoundLibrary mpi = FindLibrary({"libmpi.so.40"}, "MPI_Init_thread");
  if (mpi.path.empty())
    return Fails("OpenMPI's library does not load: " + mpi.error, "install OpenMPI (Debian: openmpi-bin)");
  return Works("OpenMPI's library is " + mpi.path);
}

}  // namespace gpusonde::doctor
