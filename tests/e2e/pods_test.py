# SPDX-License-Identifier: Apache-2.0
"""GPUs and labels of pods. kubelet, the container runtime and the GPU are *simulated*: kubelet/double.mjs, which is gRPC's own
server for Node, and simgpu. Nothing here ran on a cluster."""

import json
import pathlib
import re
import shutil
import signal
import subprocess
import time
import unittest
import urllib.request

import program

OWN_MACHINE = "other tests' GPU programs would hold the simulated device, too"
CPUS = 0.25  # it waits for what kubelet is asked every few seconds
TAKES_S = 80
DOUBLE = pathlib.Path(__file__).resolve().parent / "kubelet"
HPC = program.BUILD / "bin/hpc"
CGROUPS = pathlib.Path("/sys/fs/cgroup/cpu/gpusonde-pods-test")  # as with kubelet's --cgroup-root
POD = "kubepods/burstable/pod0f8ac1f2-5d3b-4c1e-9f5a-1b2c3d4e5f60"
WORKER, NOTEBOOK = "c" * 64, "d" * 64


def pod(name, *device_ids, namespace="ml", container="worker", resource="nvidia.com/gpu"):
    """A pod as the pod-resources API has it."""
    return {"name": name, "namespace": namespace,
            "containers": [{"name": container, "devices": [{"resource_name": resource, "device_ids": device_ids}], "cpu_ids": [3]}]}


@unittest.skipUnless((DOUBLE / "node_modules/@grpc/grpc-js").exists(), "its npm packages are missing; run `make setup`")
class PodsTestCase(program.TestCase):
    def setUp(self):
        super().setUp()
        self.folder.chmod(0o755)
        self.doubles = {}

    def tell(self, name, **calls):
        """What a double answers from now on."""
        state = self.folder / f"{name}.json"
        state.with_suffix(".new").write_text(json.dumps(calls))
        state.with_suffix(".new").rename(state)

    def start_double(self, name):
        """The socket of a simulated kubelet or runtime, alone in its folder."""
        socket = self.folder / name / f"{name}.sock"
        socket.parent.mkdir(exist_ok=True)
        double = subprocess.Popen(["node", DOUBLE / "double.mjs", socket, self.folder / f"{name}.json"], stdout=subprocess.PIPE,
                                  text=True)
        self.addCleanup(double.communicate)
        self.addCleanup(double.kill)
        self.assertEqual(double.stdout.readline(), "listening\n")
        self.doubles[name] = double
        return socket

    def end_double(self, name):
        self.doubles[name].kill()
        self.doubles[name].wait()
        (self.folder / name / f"{name}.sock").unlink(missing_ok=True)


class DoctorTest(PodsTestCase):
    """`gpusonde doctor` where the sockets have their usual paths."""

    needs_recording = False

    def setUp(self):
        super().setUp()
        if subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode != 0:
            self.skipTest("mounting is not allowed here")
        for name in ("kubelet", "runtime"):
            (self.folder / name).mkdir()

    def doctor(self, prefix="exec"):
        """The findings about kubelet and the runtime, in a mount namespace of their own."""
        script = f"""
set -e
mount -t tmpfs tmpfs /var/lib && mkdir -p /var/lib/kubelet/pod-resources && mount --bind {self.folder}/kubelet /var/lib/kubelet/pod-resources
mount -t tmpfs tmpfs /run && mkdir -p /run/crio && mount --bind {self.folder}/runtime /run/crio
{prefix} {self.binary} doctor --format json"""
        done = subprocess.run(["unshare", "-m", "bash", "-c", script], capture_output=True, text=True, timeout=60, check=False)
        found = {one["name"]: one for one in json.loads(done.stdout or "{}")["capabilities"]}
        return found["kubelet_pod_resources"], found["container_runtime"]

    binary = program.GPUSONDE

    def test_a_machine_without_kubernetes(self):
        kubelet, runtime = self.doctor()
        self.assertFalse(kubelet["works"] or runtime["works"])
        self.assertIn("No such file", kubelet["why"])
        self.assertIn("only nodes of Kubernetes", kubelet["what_to_do"])
        self.assertIn("no container runtime listens at", runtime["why"])

    def test_both_answer(self):
        self.tell("kubelet", List={"reply": {"pod_resources": [pod("a", "GPU-1", "GPU-2"), pod("b", "GPU-3::1"), pod("c")]}})
        self.tell("runtime", ListPodSandbox={"reply": {}}, ListContainers={"reply": {"containers": [{"id": WORKER}]}})
        self.start_double("kubelet")
        self.start_double("runtime").rename(self.folder / "runtime/crio.sock")
        kubelet, runtime = self.doctor()
        self.assertTrue(kubelet["works"], kubelet)
        self.assertEqual(kubelet["why"], "kubelet answers: 3 devices of NVIDIA allocated to 2 pods")
        self.assertTrue(runtime["works"], runtime)
        self.assertEqual(runtime["why"], "/run/crio/crio.sock answers with 1 container")

    def test_dynamic_resources(self):
        claims = [{"claim_name": "gpu", "claim_namespace": "ml", "claim_resources": [
            {"cdi_devices": [{"name": "k8s.gpu.nvidia.com/claim=0f8a-gpu-0"}], "driver_name": "gpu.nvidia.com", "device_name": "gpu-0"}]}]
        one = pod("a")
        one["containers"][0]["dynamic_resources"] = claims
        self.tell("kubelet", List={"reply": {"pod_resources": [one]}})
        self.start_double("kubelet")
        self.assertEqual(self.doctor()[0]["why"], "kubelet answers: 1 device of NVIDIA allocated to 1 pod")

    def test_a_kubelet_without_this_version_of_the_api(self):
        self.tell("kubelet")
        self.start_double("kubelet")
        kubelet, _ = self.doctor()
        self.assertFalse(kubelet["works"])
        self.assertIn("gRPC status 12: unknown method List", kubelet["why"])
        self.assertIn("1.20", kubelet["what_to_do"])

    def test_a_kubelet_that_hangs_or_is_gone(self):
        self.tell("kubelet", List={"hang": True})
        self.start_double("kubelet")
        self.assertIn("no reply within 3 s", self.doctor()[0]["why"])
        self.doubles["kubelet"].kill()
        self.doubles["kubelet"].wait()
        self.assertIn("nobody listens at the socket", self.doctor()[0]["why"])

    def test_huge_answers(self):
        self.tell("kubelet", List={"pods": 10_000})
        self.start_double("kubelet")
        kubelet, _ = self.doctor()
        self.assertTrue(kubelet["works"], kubelet)
        self.assertIn("4096 devices", kubelet["why"])
        self.end_double("kubelet")
        self.tell("kubelet", List={"pods": 40_000})
        self.start_double("kubelet")
        self.assertIn("the reply has more than 16 MiB", self.doctor()[0]["why"])

    def test_a_user_who_may_not_ask(self):
        self.tell("kubelet", List={"reply": {}})
        self.start_double("kubelet")
        self.binary = self.folder / "gpusonde"  # others may not be able to read the tree
        shutil.copy(program.GPUSONDE, self.binary)
        self.binary.chmod(0o755)
        kubelet, _ = self.doctor("exec setpriv --reuid=65534 --regid=65534 --clear-groups")
        self.assertFalse(kubelet["works"])
        self.assertIn("Permission denied", kubelet["why"])
        self.assertIn("run gpusonde as root", kubelet["what_to_do"])


class UpTest(PodsTestCase):
    """`gpusonde up` beside a simulated kubelet, container runtime and GPU."""

    def setUp(self):
        super().setUp()
        self.log = self.folder / "log"
        self.environment = self.simulated_machine()
        self.assertEqual(self.record("sleep", "1.5", env=self.environment).returncode, 0)
        self.uuid = self.value("SELECT uuid FROM devices WHERE ordinal = 0")
        self.tell("kubelet", List={"reply": {"pod_resources": [pod("notebook-0", self.uuid)]}})
        self.tell("runtime", ListPodSandbox={"reply": {"items": [
            {"id": "s1", "metadata": {"name": "notebook-0", "namespace": "ml", "uid": "5d3b"}, "labels": {"team": "vision\nx", "secret": "y"}},
            {"id": "s2", "metadata": {"name": "train-7", "namespace": "ml", "uid": "0f8a"}, "labels": {"team": "speech"}}]}},
            ListContainers={"reply": {"containers": [
                {"id": NOTEBOOK, "pod_sandbox_id": "s1", "metadata": {"name": "worker"}, "state": 1},
                {"id": WORKER, "pod_sandbox_id": "s2", "metadata": {"name": "worker"}, "state": 1}]}})

    def start_up(self, *options):
        kubelet, runtime = self.start_double("kubelet"), self.start_double("runtime")
        with self.log.open("w", encoding="utf-8") as log:
            up = subprocess.Popen([program.GPUSONDE, "up", "--state", self.folder / "state", "--listen", "127.0.0.1:0", "--no-open",
                                   "--kubelet-socket", kubelet, "--cri-socket", runtime, "--pod-labels", "app,team", *options],
                                  env=self.environment, stdout=subprocess.PIPE, stderr=log, text=True)
        self.addCleanup(up.communicate)
        self.addCleanup(up.kill)
        for line in up.stdout:
            if found := re.search(r"http://\S+/", line):
                self.url = found.group()
                return up
        return self.fail("it says where the UI is")

    def get(self, path):
        with urllib.request.urlopen(self.url + path, timeout=30) as answer:
            return answer.read().decode()

    def wait_for(self, what, condition):
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if found := condition():
                return found
            time.sleep(0.5)
        return self.fail(f"{what} after 60 s")

    def groups(self, by):
        return {group["name"]: group for group in json.loads(self.get(f"api/v1/usage?by={by}"))["groups"]}

    def stop(self, up):
        up.send_signal(signal.SIGINT)
        up.communicate(timeout=120)
        self.assertEqual(up.returncode, 0, self.logged())
        return self.logged()

    def logged(self):
        return self.log.read_text(encoding="utf-8")

    def test_a_gpu_that_a_pod_has_and_does_not_use_is_idle(self):
        up = self.start_up()
        held = self.wait_for("no pod holds the GPU", lambda: self.groups("pod").get("ml/notebook-0"))
        self.assertEqual((held["processes"], held["busy_ns"], held["devices"]), (0, 0, 1))
        self.assertGreater(held["without_process_ns"], 0)
        self.assertEqual(held["without_process_ns"], held["idle_ns"])
        self.wait_for("no label", lambda: "vision\nx" in self.groups("label:team"))
        self.assertEqual(json.loads(self.get("api/v1/usage"))["labels"], ["team"])
        metrics = self.get("metrics")
        self.assertRegex(metrics, rf'DCGM_FI_DEV_GPU_TEMP{{gpu="0",UUID="{self.uuid}".*,namespace="ml",pod="notebook-0",container="worker"}}')
        # The pod ends.
        self.tell("kubelet", List={"reply": {}})
        self.wait_for("still allocated", lambda: 'pod="notebook-0"' not in self.get("metrics"))
        self.assertNotIn("does not answer", self.stop(up))
        days = sorted((self.folder / "state/days").glob("*.sonde"))
        self.assertEqual(self.value("SELECT count(*) FROM pod_devices WHERE end_ns > start_ns AND device IS NOT NULL", days[-1]), 1)
        done = program.run("usage", *days, "--by", "namespace")
        self.assertRegex(done.stdout, r"allocated without a process")
        self.assertRegex(done.stdout, r"\nml +1 +0 ")
        done = program.run("usage", *days, "--by", "label:team", "--format", "csv")
        self.assertIn(r'"vision\x0ax"', done.stdout)

    def test_a_restart_of_kubelet_is_logged_once_and_ends_nothing(self):
        up = self.start_up()
        self.wait_for("no pod holds the GPU", lambda: self.groups("pod").get("ml/notebook-0"))
        self.end_double("kubelet")
        self.wait_for("no log of its end", lambda: "API does not answer at" in self.logged())
        time.sleep(2)  # the state of GPUs is read every second
        self.assertIn('pod="notebook-0"', self.get("metrics"), "what it said last stays valid")
        self.start_double("kubelet")
        self.wait_for("no log of its restart", lambda: "API answers again at" in self.logged())
        self.tell("kubelet", List={"reply": {}})
        self.wait_for("kubelet is not asked again", lambda: 'pod="notebook-0"' not in self.get("metrics"))
        errors = self.stop(up)
        self.assertEqual(errors.count("pod-resources API does not answer at"), 1, errors)
        self.assertEqual(errors.count("pod-resources API answers again at"), 1, errors)

    @unittest.skipUnless((CGROUPS.parent / "cgroup.procs").exists(), "needs cgroup v1 with its controller cpu")
    def test_work_of_a_pod_is_not_idle(self):
        for made in (CGROUPS, CGROUPS / "kubepods", CGROUPS / "kubepods/burstable", CGROUPS / POD, CGROUPS / POD / WORKER):
            if not made.exists():
                made.mkdir()
                self.addCleanup(made.rmdir)
        self.tell("kubelet", List={"reply": {"pod_resources": [pod("train-7", self.uuid)]}})
        up = self.start_up()
        self.wait_for("no pod holds the GPU", lambda: self.groups("pod").get("ml/train-7"))
        script = f"echo $$ >{CGROUPS}/{POD}/{WORKER}/cgroup.procs && exec {HPC} --seconds 12"
        # Like a rank of a recorded program, so that all of its work is counted.
        injected = dict(self.environment, CUDA_INJECTION64_PATH=str(program.BUILD / "lib/libgpusonde-inject.so"),
                        GPUSONDE_INJECT_SOCKET="99:1")
        work = subprocess.Popen(["sh", "-c", script], env=injected, stdout=subprocess.DEVNULL)
        self.addCleanup(work.wait)
        self.addCleanup(work.kill)
        series = r'gpusonde_process_gpu_kernels_total{.*command="hpc",namespace="ml",pod="train-7",container="worker"} [1-9]'
        self.wait_for("no kernels of the pod", lambda: re.search(series, self.get("metrics")))
        work.wait()
        time.sleep(2)
        pod_time = self.groups("pod")["ml/train-7"]
        self.assertEqual(pod_time["processes"], 1)
        self.assertGreater(pod_time["busy_ns"], 1e9)
        self.assertGreater(pod_time["without_process_ns"], 1e9)
        # Until it ran and after, not while it ran.
        self.assertLess(pod_time["without_process_ns"], pod_time["held_ns"] - 8e9)
        self.assertIn("speech", self.groups("label:team"))
        self.stop(up)


if __name__ == "__main__":
    unittest.main()
