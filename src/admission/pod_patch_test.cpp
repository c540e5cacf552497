// SPDX-License-Identifier: Apache-2.0
#include "admission/pod_patch.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/evp.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <utility>

namespace gpusonde::admission {
namespace {

using nlohmann::json;
using testing::HasSubstr;

constexpr std::string_view kLibrary = "/opt/gpusonde/lib/libgpusonde-inject.so";

// What the API server sends for a pod of a Job, as of Kubernetes 1.30, shortened in the status alone.
constexpr std::string_view kReview = R"json({
  "kind": "AdmissionReview",
  "apiVersion": "admission.k8s.io/v1",
  "request": {
    "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
    "kind": {"group": "", "version": "v1", "kind": "Pod"},
    "resource": {"group": "", "version": "v1", "resource": "pods"},
    "requestKind": {"group": "", "version": "v1", "kind": "Pod"},
    "requestResource": {"group": "", "version": "v1", "resource": "pods"},
    "namespace": "ml",
    "operation": "CREATE",
    "userInfo": {"username": "system:serviceaccount:kube-system:job-controller",
                 "groups": ["system:serviceaccounts", "system:authenticated"]},
    "object": {
      "kind": "Pod",
      "apiVersion": "v1",
      "metadata": {
        "generateName": "train-",
        "creationTimestamp": null,
        "labels": {"batch.kubernetes.io/job-name": "train", "gpusonde/profile": "cuda"},
        "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": "train",
                             "uid": "2a6b0a0e-5d4c-4a0e-a2f5-0f8b4b8c1d11", "controller": true}]
      },
      "spec": {
        "volumes": [{"name": "kube-api-access-7hn5p", "projected": {"sources": [], "defaultMode": 420}}],
        "initContainers": [{"name": "fetch", "image": "fetch:1", "resources": {}}],
        "containers": [
          {"name": "worker", "image": "train:7",
           "env": [{"name": "NCCL_DEBUG", "value": "WARN"}],
           "resources": {"limits": {"cpu": "8", "nvidia.com/gpu": "1"}, "requests": {"nvidia.com/gpu": "1"}},
           "volumeMounts": [{"name": "kube-api-access-7hn5p", "readOnly": true,
                             "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}]},
          {"name": "sidecar", "image": "logs:2", "resources": {"limits": {"cpu": "1"}}}
        ],
        "restartPolicy": "Never",
        "serviceAccountName": "default"
      },
      "status": {}
    },
    "oldObject": null,
    "dryRun": false,
    "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"}
  }
})json";

json Review() { return json::parse(kReview); }
json& Pod(json& review) { return review["request"]["object"]; }
json& Worker(json& review) { return Pod(review)["spec"]["containers"][0]; }

ReviewAnswer Answer(const json& review) { return AnswerReview(review.dump(), kLibrary).value(); }
json ResponseTo(const json& review) { return json::parse(Answer(review).json)["response"]; }

json PatchIn(const json& response) {
  const std::string text = response.at("patch");
  std::string bytes(text.size(), '\0');
  const int size =
      EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()),
                      reinterpret_cast<const unsigned char*>(text.data()), static_cast<int>(text.size()));
  EXPECT_GE(size, 0);
  bytes.resize(static_cast<size_t>(size) - static_cast<size_t>(std::ranges::count(text, '=')));
  return json::parse(bytes);
}

// The pod after the answer's patch.
json Patched(json review) {
  const json response = ResponseTo(review);
  return response.contains("patch") ? Pod(review).patch(PatchIn(response)) : Pod(review);
}

const json kVariableSet = {{"name", kVariable}, {"value", kLibrary}};
const json kNvtxVariableSet = {{"name", kNvtxVariable}, {"value", kLibrary}};
const json kBothSet = json::array({kVariableSet, kNvtxVariableSet});
const json kMount = {{"name", kVolume}, {"mountPath", "/opt/gpusonde/lib"}, {"readOnly", true}};
const json kFolder = {{"name", kVolume},
                      {"hostPath", {{"path", "/opt/gpusonde/lib"}, {"type", "DirectoryOrCreate"}}}};

TEST(PodPatch, AContainerThatAsksForAGpuGetsTheVariablesAndTheLibraryAndOthersStayAsTheyWere) {
  json review = Review();
  json expected = Pod(review);
  for (const json& variable : kBothSet) expected["spec"]["containers"][0]["env"].push_back(variable);
  expected["spec"]["containers"][0]["volumeMounts"].push_back(kMount);
  expected["spec"]["volumes"].push_back(kFolder);
  EXPECT_EQ(Patched(review), expected);
  const json answer = json::parse(Answer(review).json);
  EXPECT_EQ(answer["apiVersion"], "admission.k8s.io/v1");
  EXPECT_EQ(answer["kind"], "AdmissionReview");
  EXPECT_EQ(answer["response"]["uid"], "705ab4f5-6393-11e8-b7cc-42010a800002");
  EXPECT_EQ(answer["response"]["allowed"], true);
  EXPECT_EQ(answer["response"]["patchType"], "JSONPatch");
  EXPECT_FALSE(answer["response"].contains("warnings"));
  EXPECT_EQ(Answer(review).profiled, 1);
  EXPECT_EQ(Answer(review).pod_name, "train-");
}

TEST(PodPatch, ArraysThatAreMissingNullOrEmptyAreMade) {
  for (const json& absent : {json(), json::array()}) {
    json review = Review();
    for (const char* array : {"env", "volumeMounts"}) Worker(review)[array] = absent;
    Pod(review)["spec"]["volumes"] = absent;
    const json pod = Patched(review);
    EXPECT_EQ(pod["spec"]["containers"][0]["env"], kBothSet);
    EXPECT_EQ(pod["spec"]["containers"][0]["volumeMounts"], json::array({kMount}));
    EXPECT_EQ(pod["spec"]["volumes"], json::array({kFolder}));
  }
  json review = Review();
  for (const char* array : {"env", "volumeMounts"}) Worker(review).erase(array);
  Pod(review)["spec"].erase("volumes");
  EXPECT_EQ(Patched(review)["spec"]["volumes"], json::array({kFolder}));
}

TEST(PodPatch, TheAnswerToAPatchedPodChangesNothing) {
  json review = Review();
  Pod(review) = Patched(review);
  EXPECT_FALSE(ResponseTo(review).contains("patch"));
}

TEST(PodPatch, AVolumeThatIsThereIsUsed) {
  json review = Review();
  Pod(review) = Patched(review);
  // As when another webhook has added a container meanwhile.
  json added = Worker(review);
  added.erase("env");
  Pod(review)["spec"]["containers"].push_back(added);
  const json pod = Patched(review);
  EXPECT_EQ(pod["spec"]["volumes"], Pod(review)["spec"]["volumes"]);
  EXPECT_EQ(pod["spec"]["containers"][2]["env"], kBothSet);
  EXPECT_EQ(pod["spec"]["containers"][2]["volumeMounts"], added["volumeMounts"]);
}

TEST(PodPatch, AContainerThatHasTheVariableIsLeftAloneAndItsOwnerIsTold) {
  json review = Review();
  Worker(review)["env"].push_back({{"name", kVariable}, {"value", "/other/tool.so"}});
  const json response = ResponseTo(review);
  EXPECT_FALSE(response.contains("patch"));
  EXPECT_EQ(response["allowed"], true);
  EXPECT_EQ(
      response["warnings"],
      json::array({"gpusonde does not profile containers that have CUDA_INJECTION64_PATH already: worker"}));
  EXPECT_EQ(Answer(review).taken, 1);
  // Also when the value comes from elsewhere.
  Worker(review)["env"].back() = {{"name", kVariable}, {"valueFrom", {{"configMapKeyRef", {{"key", "k"}}}}}};
  EXPECT_FALSE(ResponseTo(review).contains("patch"));
}

TEST(PodPatch, AnotherToolThatReadsNvtxRangesKeepsThem) {
  json review = Review();
  json expected = Worker(review)["env"];
  const json other = {{"name", kNvtxVariable}, {"value", "/other/tool.so"}};
  Worker(review)["env"].push_back(other);
  expected.push_back(other);
  expected.push_back(kVariableSet);
  EXPECT_EQ(Patched(review)["spec"]["containers"][0]["env"], expected);
}

TEST(PodPatch, AGpuIsAskedForByAResourceOrAClaim) {
  for (const char* resources :
       {R"({"limits":{"nvidia.com/gpu":"2"}})", R"({"limits":{"nvidia.com/gpu":1}})",
        R"({"limits":{"nvidia.com/gpu.shared":"1"}})", R"({"limits":{"nvidia.com/mig-1g.10gb":"1"}})",
        R"({"claims":[{"name":"gpu"}]})"}) {
    json review = Review();
    Worker(review)["resources"] = json::parse(resources);
    EXPECT_EQ(Answer(review).profiled, 1) << resources;
  }
  for (const char* resources :
       {"null", "{}", R"({"limits":null})", R"({"limits":{"nvidia.com/gpu":"0"}})", R"({"claims":[]})",
        R"({"limits":{"nvidia.com/gpu":0}})", R"({"limits":{"nvidia.com/hostdev":"1"}})",
        R"({"limits":{"amd.com/gpu":"1"}})", R"({"limits":["nvidia.com/gpu"]})"}) {
    json review = Review();
    Worker(review)["resources"] = json::parse(resources);
    EXPECT_EQ(Answer(review).profiled, 0) << resources;
    EXPECT_EQ(ResponseTo(review)["warnings"][0],
              "gpusonde profiles nothing of this pod: it is labelled gpusonde/profile=cuda, but no container "
              "asks for a GPU");
  }
}

TEST(PodPatch, InitContainersThatAskForAGpuAreProfiledToo) {
  json review = Review();
  Pod(review)["spec"]["initContainers"][0]["resources"] = Worker(review)["resources"];
  const json pod = Patched(review);
  EXPECT_EQ(pod["spec"]["initContainers"][0]["env"], kBothSet);
  EXPECT_EQ(pod["spec"]["volumes"].size(), 2);
  EXPECT_EQ(Answer(review).profiled, 2);
}

TEST(PodPatch, EverythingElseIsAllowedAsItIs) {
  const std::pair<const char*, json> changes[] = {
      {"/request/operation", "UPDATE"},
      {"/request/operation", "DELETE"},
      {"/request/kind/kind", "Deployment"},
      {"/request/kind/group", "example.com"},
      {"/request/kind/version", "v2"},
      {"/request/subResource", "ephemeralcontainers"},
      {"/request/object", nullptr},
      {"/request/object/metadata", json::array()},
      {"/request/object/metadata/labels", nullptr},
      {"/request/object/metadata/labels", {{"app", "train"}}},
      {"/request/object/metadata/labels", {{"gpusonde/profile", "no"}}},
      {"/request/object/metadata/labels", {{"gpusonde/profile", true}}},
  };
  for (const auto& [where, value] : changes) {
    json review = Review();
    review[json::json_pointer(where)] = value;
    EXPECT_EQ(ResponseTo(review), json({{"uid", review["request"]["uid"]}, {"allowed", true}}))
        << where << " " << value;
    EXPECT_EQ(Answer(review).pod_name, "");
  }
}

TEST(PodPatch, WhatIsNoReviewOrNoPodIsRefused) {
  const auto refused = [](std::string_view text) {
    const auto answer = AnswerReview(text, kLibrary);
    return answer.has_value() ? std::string() : answer.error().message;
  };
  EXPECT_EQ(refused(""), "the review is not JSON");
  EXPECT_EQ(refused(kReview.substr(0, kReview.size() / 2)), "the review is not JSON");
  EXPECT_EQ(refused("\xff"), "the review is not JSON");
  for (const char* other : {"null", "[]", "{}", R"({"kind":"AdmissionReview","apiVersion":7})",
                            R"({"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1beta1"})"})
    EXPECT_EQ(refused(other), "it is no AdmissionReview of admission.k8s.io/v1") << other;
  for (const json& request : {json(), json::array(), json({{"uid", ""}}), json({{"uid", 7}})}) {
    json review = Review();
    review["request"] = request;
    EXPECT_EQ(refused(review.dump()), "the review has no request with a uid") << request;
  }
  const std::pair<const char*, const char*> broken[] = {
      {"/request/object/spec", "the pod has no spec"},
      {"/request/object/spec/containers", "the pod's containers is no array"},
      {"/request/object/spec/initContainers", "the pod's initContainers is no array"},
      {"/request/object/spec/volumes", "the pod's volumes is no array"},
      {"/request/object/spec/containers/0/env", "the pod's env is no array"},
      {"/request/object/spec/containers/0/volumeMounts", "the pod's volumeMounts is no array"}};
  for (const auto& [where, message] : broken) {
    json review = Review();
    review[json::json_pointer(where)] = "text";
    EXPECT_EQ(refused(review.dump()), message);
  }
}

TEST(PodPatch, APodOfAnyNumberOfContainersHasABoundedAnswer) {
  json review = Review();
  json& containers = Pod(review)["spec"]["containers"];
  const json worker = containers[0];
  containers = json::array();
  for (size_t i = 0; i < kMaxContainers; ++i) containers.push_back(worker);
  EXPECT_EQ(Answer(review).profiled, kMaxContainers);
  EXPECT_LT(Answer(review).json.size(), 1000 * kMaxContainers);
  EXPECT_EQ(Patched(review)["spec"]["containers"].back()["env"].back(), kNvtxVariableSet);
  containers.push_back(worker);
  EXPECT_THAT(AnswerReview(review.dump(), kLibrary).error().message, HasSubstr("at most 1000"));
}

TEST(PodPatch, NamesOfAnyKindStayInTheWarningAndOutOfThePatch) {
  json review = Review();
  Worker(review)["name"] = "\x1b[31m\"},{\"op\":\"remove\"" + std::string(10'000, 'x');
  const std::string patch = PatchIn(ResponseTo(review)).dump();
  EXPECT_THAT(patch, testing::Not(HasSubstr("remove")));
  Worker(review)["env"].push_back({{"name", kVariable}, {"value", ""}});
  const std::string warning = ResponseTo(review)["warnings"][0];
  EXPECT_LE(warning.size(), 256);
  EXPECT_THAT(warning, HasSubstr("\\x1b[31m"));
}

TEST(PodPatch, AnotherLibrarysFolderIsMounted) {
  json review = Review();
  const json answer =
      json::parse(AnswerReview(review.dump(), "/usr/lib/gpusonde/lib/our \"own\".so").value().json);
  const json pod = Pod(review).patch(PatchIn(answer["response"]));
  EXPECT_EQ(pod["spec"]["containers"][0]["env"][1]["value"], "/usr/lib/gpusonde/lib/our \"own\".so");
  EXPECT_EQ(pod["spec"]["containers"][0]["volumeMounts"][1]["mountPath"], "/usr/lib/gpusonde/lib");
  EXPECT_EQ(pod["spec"]["volumes"][1]["hostPath"]["path"], "/usr/lib/gpusonde/lib");
}

TEST(PodPatch, DamagedReviewsAreAnsweredOrRefused) {
  std::mt19937 random(7);
  size_t refused = 0;
  for (int round = 0; round < 300; ++round) {
    std::string text(kReview);
    for (int i = 0; i < 3; ++i) text[random() % text.size()] = "\"{}[],:0x\xff"[random() % 10];
    const auto answer = AnswerReview(text, kLibrary);
    refused += answer.has_value() ? 0 : 1;
    if (answer.has_value()) {
      EXPECT_EQ(json::parse(answer->json)["response"]["allowed"], true);
    }
  }
  EXPECT_GT(refused, 100);
  EXPECT_FALSE(AnswerReview(std::string(1 << 16, '['), kLibrary).has_value());
  const std::string deep = std::string(1 << 15, '[') + std::string(1 << 15, ']');
  EXPECT_FALSE(AnswerReview(deep, kLibrary).has_value());
}

}  // namespace
}  // namespace gpusonde::admission
