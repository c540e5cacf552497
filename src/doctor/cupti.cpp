// SPDX-License-Identifier: Apache-2.0
#include "doctor/probes.h"
#include "doctor/shared_library.h"

namespace gpusonde::doctor {

// A program profiled brings its own CUPTI; this says whether the machine has one where CUDA puts it.
Finding ProbeCupti(const Settings&) {
  const FoundLibrary cupti =
      FindLibrary({"libcupti.so.13", "libcupti.so.12", "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so",
                   "/usr/local/cuda/lib64/libcupti.so"},
                  "cuptiActivityRegisterCallbacks");
  if (cupti.path.empty())
    return Fails("CUPTI 12 or 13 does not load: " + cupti.error,
                 "install CUDA's CUPTI, or add its folder to LD_LIBRARY_PATH; programs that bring their own "
                 "need neither");
  return Works("CUPTI is " + cupti.path);
}

}  // namespace gpusonde::doctor
