// SPDX-License-Identifier: Apache-2.0
#include "otlp/profile_windows.h"

#include <utility>

#include "exporters/otlp/profiles.h"
#include "model/profile.h"
#include "model/selection.h"
#include "store/queries/gpu_query.h"
#include "store/queries/process_facts.h"
#include "store/queries/profile_query.h"

namespace gpusonde::otlp {

Result<std::vector<Request>> ProfileWindows::Render(int64_t to_ns) {
  std::vector<Request> requests;
  if (to_ns <= from_ns_) return requests;
  for (const model::ProfileType type :
       {model::ProfileType::kCpu, model::ProfileType::kGpu, model::ProfileType::kOffCpu}) {
    const model::Selection selection{
        .from_ns = from_ns_, .to_ns = to_ns, .filter = {}, .off_cpu = type == model::ProfileType::kOffCpu};
    ASSIGN_OR_RETURN(const model::Profile profile, type == model::ProfileType::kGpu
                                                       ? store::ReadGpuProfile(store_, selection)
                                                       : store::ReadProfile(store_, selection));
    if (profile.samples.empty()) continue;
    exporters::Options options;
    ASSIGN_OR_RETURN(options.processes, store::ReadProcessFacts(store_, profile));
    ASSIGN_OR_RETURN(std::string body, exporters::kOtlp.render(profile, options));
    requests.push_back({.body = std::move(body), .items = exporters::CountOtlpProfiles(profile, options)});
  }
  from_ns_ = to_ns;
  return requests;
}

}  // namespace gpusonde::otlp
