// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace gpusonde::admission {

// A pod with this label asks that the GPU work of its containers be profiled.
inline constexpr std::string_view kLabel = "gpusonde/profile", kLabelValue = "cuda";
// The CUDA driver loads the library by this variable, and NVTX, for ranges, by the other.
inline constexpr std::string_view kVariable = "CUDA_INJECTION64_PATH";
inline constexpr std::string_view kNvtxVariable = "NVTX_INJECTION64_PATH";
// The name of the volume that a changed pod has.
inline constexpr std::string_view kVolume = "gpusonde-inject";
// Of a pod, init containers included; real ones have a few. It bounds the answer: a container of 50 bytes
// gets 400 bytes of patch.
inline constexpr size_t kMaxContainers = 1000;

struct ReviewAnswer {
  std::string json;           // the AdmissionReview that answers
  size_t profiled = 0;        // containers that the patch changes
  size_t taken = 0;           // containers left alone because they have the variable already
  std::string pod_name = {};  // of a pod that asks, or the prefix of its name; any UTF-8
};

// Answers an AdmissionReview (admission.k8s.io/v1) of Kubernetes' API server
// (https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/). Every request
// is allowed. A new pod with the label gets a JSON Patch (RFC 6902) that gives each container that asks for a
// GPU the variables, and the folder of `library`, an absolute path on the nodes, read-only at the same place.
// A container that has kVariable is left as it is, and so is every other object; so a second answer changes
// nothing. One that has only kNvtxVariable keeps that. A node without that folder makes an empty one, and the
// pod then runs unprofiled.
//
// Errors: kInvalidArgument for what is no AdmissionReview of that version or has no valid pod, and for a pod
// of more than kMaxContainers. Thread-safe. The review is untrusted, and needs up to 100 times its size of
// memory.
Result<ReviewAnswer> AnswerReview(std::string_view review, std::string_view library);

}  // namespace gpusonde::admission
