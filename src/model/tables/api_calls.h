// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/id128.h"
#include "model/table.h"

namespace gpusonde::model {

// One row per recorded call into CUDA or the OS runtime. Of a program that gpusonde profiles, these are a
// sample of its launches (src/inject/calls.cpp), so most GPU work has none; of an imported trace all its
// calls.
struct ApiCall {
  Id128 process;
  int32_t tid = 0;
  int32_t session = 0;
  int64_t correlation = 0;
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  std::string domain;
  std::string name;
  std::optional<int32_t> result;
  std::optional<Id128> stack;
  double probability = 0;
};

inline constexpr Table kApiCalls(
    "api_calls", kFacts,
    "One row per recorded call into CUDA or the OS runtime: of a profiled program a sample of its launches, "
    "with the stacks that made them; of an imported trace all its calls",
    Field("process", &ApiCall::process, "", "the calling process"),
    Field("tid", &ApiCall::tid, "", "thread id in the host namespace"),
    Field("session", &ApiCall::session, "", "awake period of the inject library"),
    Field("correlation", &ApiCall::correlation, "", "joins the call to its GPU activity"),
    Field("start_ns", &ApiCall::start_ns, "ns", "entry"), Field("end_ns", &ApiCall::end_ns, "ns", "return"),
    Field("domain", &ApiCall::domain, "", "cuda_runtime, cuda_driver or os"),
    Field("name", &ApiCall::name, "", "function called"),
    Field("result", &ApiCall::result, "", "return code"),
    Field("stack", &ApiCall::stack, "", "the caller; null where unknown"),
    Field("probability", &ApiCall::probability, "1",
          "with which the call was sampled; 1 where every call is recorded"));

}  // namespace gpusonde::model
