# SPDX-License-Identifier: Apache-2.0
"""`gpusonde usage` of programs in cgroups as kubelet and Docker make them, on the simulated GPU. kubelet is simulated: the test
makes the cgroups, and the link to a log that names the pod, in a mount namespace of its own."""

import json
import pathlib
import subprocess
import unittest

import program

OWN_MACHINE = "other tests' GPU programs would hold the simulated device, too"
CPUS = 0.5
CGROUPS = pathlib.Path("/sys/fs/cgroup/cpu/gpusonde-usage-test")  # as with kubelet's --cgroup-root
POD = "kubepods/burstable/pod0f8ac1f2-5d3b-4c1e-9f5a-1b2c3d4e5f60"
WORKER, OTHER = "a" * 64, "b" * 64
HPC = program.BUILD / "bin/hpc"

# Both start in the pod; the second moves to the other container.
PROGRAMS = f"""
{HPC} --seconds 4 >hpc1.txt &
sh -c 'echo $$ >{CGROUPS}/docker/{OTHER}/cgroup.procs && exec {HPC} --seconds 4' >hpc2.txt &
wait"""

# The union of all work of the device, as docs/api.md has it.
BUSY = """SELECT sum(greatest(end_ns - greatest(start_ns, coalesce(until_ns, 0)), 0))::BIGINT AS busy_ns FROM (
  SELECT start_ns, end_ns, max(end_ns) OVER (ORDER BY start_ns, end_ns
    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS until_ns FROM (
      SELECT start_ns, end_ns FROM kernels UNION ALL SELECT start_ns, end_ns FROM memcpys
      UNION ALL SELECT start_ns, end_ns FROM memsets))"""


@unittest.skipUnless(program.can_record(), "needs root and a kernel that lets gpusonde record")
@unittest.skipUnless((CGROUPS.parent / "cgroup.procs").exists(), "needs cgroup v1 with its controller cpu")
class UsageTest(program.TestCase):
    def setUp(self):
        super().setUp()
        for folder in (f"{POD}/{WORKER}", f"docker/{OTHER}"):
            made = CGROUPS / folder
            for parent in reversed([made, *made.parents]):
                if CGROUPS.parent in parent.parents and not parent.exists():
                    parent.mkdir()
                    self.addCleanup(parent.rmdir)

    def record(self):
        script = f"""
set -e
mount -t tmpfs tmpfs /var/log && mkdir -p /var/log/containers
ln -s /var/log/pods/gone /var/log/containers/trainer-0_ml_worker-{WORKER}.log
echo $$ >{CGROUPS}/{POD}/{WORKER}/cgroup.procs
exec {program.SIMGPU} run -- {program.GPUSONDE} record -o run.sonde -- sh -c "$PROGRAMS" """
        done = subprocess.run(["unshare", "-m", "bash", "-c", script], cwd=self.folder, capture_output=True, text=True, timeout=120,
                              env={**program.os.environ, "PROGRAMS": PROGRAMS}, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)

    def usage(self, *options):
        done = program.run("usage", "run.sonde", *options, cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_pods_and_containers_share_the_device(self):
        self.record()
        usage = json.loads(self.usage("--format", "json"))
        groups = {group["name"]: group for group in usage["groups"]}
        self.assertEqual(set(groups), {"pod ml/trainer-0", "container " + OTHER[:12]})
        busy = json.loads(program.run("query", "run.sonde", "--format", "json", BUSY, cwd=self.folder).stdout)[0]["busy_ns"]
        self.assertGreater(busy, 1e9)
        # What ran before a session's begin was recorded is not observed: little.
        self.assertAlmostEqual(usage["total"]["busy_ns"] / busy, 1, delta=0.01)
        for group in groups.values():
            self.assertGreater(group["busy_ns"], 0.2 * busy)
            self.assertGreater(group["sampled_utilization"], 0.1)
        self.assertIn("simulated GPUs", self.usage())
        self.assertIn("ml/trainer-0/worker", self.usage("--by", "container"))
        csv = self.usage("--by", "application", "--format", "csv", "--price", "2.5")
        self.assertRegex(csv, r'^application,gpus,.*,idle_cost,without_process_hours\r?\n"hpc",1,2,')


if __name__ == "__main__":
    unittest.main()
