# SPDX-License-Identifier: Apache-2.0
"""The image of deploy/container, built of the package and run by Debian's buildah."""

import json
import os
import re
import shutil
import subprocess
import unittest

import program

TAKES_S = 60
CPUS = 0.5  # it waits for the disk

DOCKERFILE = "deploy/container/Dockerfile"
UNIT = program.ROOT / "deploy/systemd/gpusonde-agent.service"
# What buildah gives to every container; its `--cap-drop all` would also drop those that `--cap-add` adds.
USUAL = ("AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE", "NET_RAW",
         "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT")


class Container(program.TestCase):
    needs_recording = False

    def setUp(self):
        super().setUp()
        if shutil.which("buildah") is None:
            self.skipTest("no buildah; install Debian's package buildah")
        if os.geteuid() != 0:
            self.skipTest("buildah builds here as root only")
        self.package = program.unpacked_package(self.folder / "package")

    def buildah(self, *arguments):
        """Its output. All that it stores is in the test's folder."""
        store = ["--root", self.folder / "store", "--runroot", self.folder / "run", "--storage-driver", "vfs"]
        # Mounts are made in a mount namespace that ends with it.
        done = subprocess.run(["unshare", "--mount", "buildah", *store, *arguments], capture_output=True, text=True, timeout=120,
                              check=False, stdin=subprocess.DEVNULL, env={**os.environ, "HOME": str(self.folder)})
        self.assertIn(done.returncode, (0, 1), done.stderr)
        return done.stdout

    def test_it_runs_with_the_capabilities_of_the_unit_and_no_others(self):
        self.buildah("bud", "--isolation", "chroot", "--quiet", "--tag", "gpusonde", "--file", self.package / DOCKERFILE, self.package)
        container = self.buildah("from", "gpusonde").strip()
        capabilities = re.search(r"^CapabilityBoundingSet=(.*)$", UNIT.read_text(), re.MULTILINE)[1].split()
        rights = [f"--cap-add={name}" for name in capabilities] + [f"--cap-drop=CAP_{name}" for name in USUAL]
        run = ["run", "--isolation", "chroot", *rights, container, "--"]
        image = json.loads(self.buildah("inspect", "--type", "image", "gpusonde"))
        (entry,) = image["OCIv1"]["config"]["Entrypoint"]
        self.assertEqual(self.buildah(*run, entry, "--version"), program.run("--version").stdout)
        report = json.loads(self.buildah(*run, entry, "doctor", "--format", "json"))
        findings = {finding["name"]: finding for finding in report["capabilities"]}
        self.assertIn("user 0", findings["privileges"]["why"])
        self.assertEqual(sorted(set(re.findall(r"CAP_\w+", findings["privileges"]["why"]))),
                         sorted(set(capabilities) - {"CAP_DAC_READ_SEARCH"}), "doctor doesn't list that one")
        for name in ("duckdb", "inject", "ui"):
            self.assertTrue(findings[name]["works"], findings[name])
            self.assertNotIn(str(program.ROOT), findings[name]["why"])
        if program.can_record():
            self.assertTrue(report["can_record"], report)
            self.assertTrue(findings["uprobes"]["works"] and findings["kallsyms"]["works"], report)


if __name__ == "__main__":
    unittest.main()
