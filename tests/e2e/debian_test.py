# SPDX-License-Identifier: Apache-2.0
"""The Debian package: lintian, and installed, upgraded, removed and purged in a Debian of its own (debootstrap)."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import program
from program import BUILD, ROOT

TAKES_S = 140
CPUS = 0.5  # it waits for packages


def run(*command, **options):
    return subprocess.run(command, capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL, check=False, **options)


def mirror():
    """Where this machine's own Debian comes from, and its release."""
    targets = run("apt-get", "indextargets", "--format", "$(REPO_URI) $(CODENAME)", "Created-By: Packages")
    found = re.search(r"^(http\S+) (\w+)$", targets.stdout, re.MULTILINE)
    return found.groups() if found else None


class Debian(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if re.search(r"^GPUSONDE_SANITIZE:\w+=.+", (BUILD / "CMakeCache.txt").read_text(), re.MULTILINE):
            raise unittest.SkipTest("packages are made of builds without sanitizers")
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="gpusonde-debian-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.package = cls.make("1.0")

    @classmethod
    def make(cls, version):
        package = cls.folder / f"gpusonde_{version}_amd64.deb"
        done = run(ROOT / "tools/debian-package", "--build", BUILD, "--output", package, "--version", version, "--level", "0")
        assert done.returncode == 0, done.stderr
        return package

    def newer(self, version):
        """The package with a newer version, which takes seconds as it isn't compressed."""
        root, package = self.folder / f"root-{version}", self.folder / f"gpusonde_{version}_amd64.deb"
        done = run("dpkg-deb", "--raw-extract", self.package, root)
        self.assertEqual(done.returncode, 0, done.stderr)
        control = root / "DEBIAN/control"
        control.write_text(re.sub(r"^Version: .*$", f"Version: {version}", control.read_text(), flags=re.MULTILINE))
        done = run("dpkg-deb", "--root-owner-group", "-Znone", "--build", root, package)
        self.assertEqual(done.returncode, 0, done.stderr)
        shutil.rmtree(root)
        return package

    def test_lintian_finds_no_error(self):
        if shutil.which("lintian") is None:
            self.skipTest("no lintian; install Debian's package lintian")
        done = run("lintian", "--allow-root", "--fail-on", "error", "--tag-display-limit", "0", self.package)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_it_is_installed_upgraded_and_removed(self):
        if os.geteuid() != 0 or shutil.which("debootstrap") is None:
            self.skipTest("a root of its own needs root and Debian's package debootstrap")
        source = mirror()
        if source is None:
            self.skipTest("apt names no mirror that a root could be made from")
        root = self.folder / "root"
        made = run("debootstrap", "--variant=minbase", source[1], root, source[0])
        self.assertEqual(made.returncode, 0, made.stdout[-2000:] + made.stderr)

        def inside(*command):
            # With a /proc, by which the program finds its files; the mount ends with the command.
            enter = ["unshare", "--mount", "sh", "-c", 'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"', root]
            return run(*enter, *command, env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive"})

        def install(package):
            shutil.copy(package, root / "tmp")
            done = inside("dpkg", "--install", f"/tmp/{package.name}")
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

        install(self.package)
        self.assertRegex(inside("gpusonde", "--version").stdout, r"^\d+\.\d+")
        doctor = inside("gpusonde", "doctor")
        self.assertIn("DuckDB", doctor.stdout, "it finds its libraries: " + doctor.stderr)
        units = sorted(path.name for path in (root / "lib/systemd/system").glob("gpusonde-*.service"))
        self.assertEqual(units, sorted(path.name for path in (ROOT / "deploy/systemd").glob("*.service")))
        enabled = [path for path in (root / "etc/systemd").rglob("gpusonde*")]
        self.assertEqual(enabled, [], "installing starts and enables nothing")
        device = json.loads((root / "etc/cdi/gpusonde.json").read_text())
        (mount,) = device["devices"][0]["containerEdits"]["mounts"]
        self.assertTrue((root / mount["hostPath"].lstrip("/")).is_file(), mount)
        drop_in = (root / "usr/share/doc/gpusonde/examples/gpusonde-profile.conf").read_text()
        for variable in ("CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH"):
            self.assertIn(f"{variable}={mount['hostPath']}\n", drop_in)

        kept = root / "var/lib/gpusonde/2026-11-25.sonde"
        kept.parent.mkdir()
        kept.write_text("what up collected")
        install(self.newer("1.1"))
        self.assertIn("1.1", inside("dpkg-query", "-W", "gpusonde").stdout)
        for action in ("--remove", "--purge"):
            done = inside("dpkg", action, "gpusonde")
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        left = [str(path.relative_to(root)) for folder in ("etc", "lib", "usr") for path in (root / folder).rglob("*gpusonde*")]
        self.assertEqual(left, [])
        self.assertEqual(kept.read_text(), "what up collected", "data are the user's")

    def test_the_same_build_gives_the_same_bytes(self):
        again = self.folder / "again.deb"
        done = run(ROOT / "tools/debian-package", "--build", BUILD, "--output", again, "--version", "1.0", "--level", "0")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(again.read_bytes(), self.package.read_bytes())


if __name__ == "__main__":
    unittest.main()
