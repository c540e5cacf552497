// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/id128.h"
#include "model/table.h"

namespace gpusonde::model {

// One row per call into CUDA or the OS runtime; launches carry the stack that made them.
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
    "One row per call into CUDA or the OS runtime; launches carry the stack that made them",
    Field("process", &ApiCall::process, "", "the calling process"),
    Field("tid", &ApiCall::tid, "", "thread id in the host namespace"),
    Field("session", &ApiCall::session, "", "awake period of the inject library"),
    Field("correlation", &ApiCall::correlation, "", "joins the call to its GPU activity"),
    Field("start_ns", &ApiCall::start_ns, "ns", "entry"), Field("end_ns", &ApiCall::end_ns, "ns", "return"),
    Field("domain", &ApiCall::domain, "", "cuda_runtime, cuda_driver or os"),
    Field("name", &ApiCall::name, "", "function called"),
    Field("result", &ApiCall::result, "", "return code"),
    Field("stack", &ApiCall::stack, "", "the caller; null when not sampled"),
    Field("probability", &ApiCall::probability, "1",
          "sampling probability of the stack; 1 when always captured"));

}  // namespace gpusonde::model
