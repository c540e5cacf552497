// SPDX-License-Identifier: Apache-2.0
#include "model/cgroup_owner.h"

#include <gtest/gtest.h>

#include <string>

namespace gpusonde::model {
namespace {

const std::string kId = "3f4e9a0b1c2d3e4f5a6b7c8d9e0f1a2b3c4d5e6f7a8b9c0d1e2f3a4b5c6d7e8f";
constexpr const char* kUid = "0f8ac1f2-5d3b-4c1e-9f5a-1b2c3d4e5f60";

TEST(CgroupOwner, OfKubernetesWithTheCgroupfsDriver) {
  const CgroupOwner owner = OwnerOfCgroup("/kubepods/burstable/pod" + std::string(kUid) + "/" + kId);
  EXPECT_EQ(owner.pod_uid, kUid);
  EXPECT_EQ(owner.container, kId);
  EXPECT_EQ(owner.runtime, "");
  EXPECT_EQ(OwnerOfCgroup("/kubepods/pod" + std::string(kUid) + "/" + kId).pod_uid, kUid);
}

TEST(CgroupOwner, OfKubernetesWithTheSystemdDriver) {
  const std::string slice =
      "/kubepods.slice/kubepods-besteffort.slice/"
      "kubepods-besteffort-pod0f8ac1f2_5d3b_4c1e_9f5a_1b2c3d4e5f60.slice/";
  const CgroupOwner containerd = OwnerOfCgroup(slice + "cri-containerd-" + kId + ".scope");
  EXPECT_EQ(containerd.pod_uid, kUid);
  EXPECT_EQ(containerd.container, kId);
  EXPECT_EQ(containerd.runtime, "containerd");
  EXPECT_EQ(OwnerOfCgroup(slice + "crio-" + kId + ".scope/container").runtime, "cri-o");
  EXPECT_EQ(OwnerOfCgroup("/kubepods.slice/kubepods-pod0f8ac1f2_5d3b_4c1e_9f5a_1b2c3d4e5f60.slice").pod_uid,
            kUid);
}

TEST(CgroupOwner, OfKubernetesBelowContainerdsService) {
  const CgroupOwner owner = OwnerOfCgroup(
      "/system.slice/containerd.service/kubepods-burstable-pod0f8ac1f2_5d3b_4c1e_9f5a_"
      "1b2c3d4e5f60.slice:cri-containerd:" +
      kId);
  EXPECT_EQ(owner.pod_uid, kUid);
  EXPECT_EQ(owner.container, kId);
  EXPECT_EQ(owner.runtime, "containerd");
}

TEST(CgroupOwner, OfAStaticPod) {
  EXPECT_EQ(OwnerOfCgroup("/kubepods/burstable/pod0123456789abcdef0123456789abcdef/" + kId).pod_uid,
            "0123456789abcdef0123456789abcdef");
}

TEST(CgroupOwner, OfNestedContainersTheInnermost) {
  const std::string outer(64, 'a');
  const CgroupOwner owner =
      OwnerOfCgroup("/docker/" + outer + "/kubelet/kubepods/burstable/pod" + kUid + "/" + kId);
  EXPECT_EQ(owner.pod_uid, kUid);
  EXPECT_EQ(owner.container, kId);
  // A pod's own processes are not those of the container around it.
  EXPECT_EQ(OwnerOfCgroup("/docker/" + outer + "/kubelet/kubepods/pod" + std::string(kUid)).container, "");
}

TEST(CgroupOwner, OfContainersWithoutKubernetes) {
  EXPECT_EQ(OwnerOfCgroup("/docker/" + kId).runtime, "docker");
  EXPECT_EQ(OwnerOfCgroup("/system.slice/docker-" + kId + ".scope").container, kId);
  EXPECT_EQ(OwnerOfCgroup("/machine.slice/libpod-" + kId + ".scope/container").runtime, "podman");
  EXPECT_EQ(OwnerOfCgroup("/libpod_parent/libpod-" + kId).runtime, "podman");
  EXPECT_EQ(OwnerOfCgroup("/default/" + kId).container, kId);
}

TEST(CgroupOwner, OfSlurm) {
  EXPECT_EQ(OwnerOfCgroup("/slurm/uid_1000/job_4711/step_0/task_0").slurm_job, "4711");
  EXPECT_EQ(OwnerOfCgroup("/system.slice/slurmstepd.scope/job_4711/step_batch/user/task_0").slurm_job,
            "4711");
  EXPECT_EQ(OwnerOfCgroup("/slurm_node1/uid_0/job_7/step_extern").slurm_job, "7");
  EXPECT_EQ(OwnerOfCgroup("/slurm_vm/uid_0/job_5/step_batch").slurm_job, "5") << "a task of the array 4";
  EXPECT_EQ(OwnerOfCgroup("/slurm/uid_1000/job_42/step_interactive/task_0").slurm_job, "42");
  EXPECT_EQ(OwnerOfCgroup("/system.slice/slurmstepd.scope/job_42/step_extern/user/task_special").slurm_job,
            "42");
  EXPECT_EQ(OwnerOfCgroup("/system.slice/gpu-7_slurmstepd.scope/job_42/step_0/user/task_3").slurm_job, "42");
  EXPECT_EQ(OwnerOfCgroup("/home/job_7").slurm_job, "") << "anybody may name a cgroup so";
  EXPECT_EQ(OwnerOfCgroup("/system.slice/slurmstepd.scope/system").slurm_job, "");
}

// What Debian's SLURM 22.05 (proctrack/cgroup, cgroup/v1) made of `srun`.
constexpr const char* kOfSrun = R"(9:name=systemd:/
8:pids:/
6:freezer:/slurm_vm/uid_0/job_1/step_0
5:devices:/
4:memory:/process_api
1:cpu:/
0::/
)";

TEST(MostTellingCgroup, OfSlurmTheHierarchyThatItUses) {
  EXPECT_EQ(MostTellingCgroup(kOfSrun), "/slurm_vm/uid_0/job_1/step_0");
  EXPECT_EQ(MostTellingCgroup(
                "6:freezer:/slurm/uid_1/job_2/step_0\n1:cpu,cpuacct:/system.slice/slurmd.service\n0::/x\n"),
            "/slurm/uid_1/job_2/step_0");
}

TEST(MostTellingCgroup, IsTheCpuControllersWhereNoneSaysMore) {
  const std::string docker = "/docker/" + kId;
  EXPECT_EQ(MostTellingCgroup("6:freezer:" + docker + "\n1:cpu,cpuacct:" + docker + "/a\n0::/x\n"),
            docker + "/a");
  EXPECT_EQ(MostTellingCgroup("3:cpuset:/b\n1:cpuacct,cpu:/a\n0::/x\n"), "/a");
  EXPECT_EQ(MostTellingCgroup("1:name=systemd:/a\n0::/user.slice\n"), "/user.slice");
  EXPECT_EQ(MostTellingCgroup("0::/with:colon\n"), "/with:colon");
  EXPECT_EQ(MostTellingCgroup("0::" + docker), docker);
  for (const char* text : {"", "\n", ":", "::", "7", "7:cpu"}) EXPECT_EQ(MostTellingCgroup(text), "") << text;
}

TEST(CgroupOwner, OfSystemd) {
  EXPECT_EQ(OwnerOfCgroup("/system.slice/ollama.service").service, "ollama.service");
  EXPECT_EQ(OwnerOfCgroup("/user.slice/user-1000.slice/user@1000.service/app.slice/jupyter.service").service,
            "jupyter.service");
  EXPECT_EQ(OwnerOfCgroup("/user.slice/user-1000.slice/session-3.scope").service, "");
}

TEST(CgroupOwner, OfPathsThatOnlyLookLikeIt) {
  for (const char* path : {"", "/", "//", "/pod", "/kubepods/pod", "/kubepods/podXYZ", "/docker/abc",
                           "/slurm/job_", "/slurm/job_12x", "/docker-.scope", ":cri-containerd:"}) {
    const CgroupOwner owner = OwnerOfCgroup(path);
    EXPECT_EQ(owner.container + owner.pod_uid + owner.slurm_job + owner.runtime, "") << path;
  }
}

}  // namespace
}  // namespace gpusonde::model
