// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <system_error>

#include "doctor/probes.h"
#include "server/ui_files.h"

namespace gpusonde::doctor {

Finding ProbeUi(const Settings&) {
  std::string looked_in;
  for (const std::string& folder : server::UiFolders()) {
    std::error_code error;
    if (std::filesystem::is_regular_file(folder + "/index.html", error))
      return Works("the UI is in " + folder);
    looked_in += (looked_in.empty() ? "" : " nor in ") + folder;
  }
  return Fails("the UI is not in " + looked_in,
               "run `make build` in the source tree, or set GPUSONDE_WEB to the folder of the UI");
}

}  // namespace gpusonde::doctor
