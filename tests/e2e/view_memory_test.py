# SPDX-License-Identifier: Apache-2.0
"""Questions of `view` that need more memory than its process may use are refused one by one, and it goes on."""

import contextlib
import json
import re
import subprocess
import sys
import tempfile
import unittest
import urllib.error
import urllib.request

import program

KERNELS = 400_000
# Of the reader's data, in MB: too little for most questions, for some, and enough.
LIMITS = (130, 180, 1_000)
QUESTIONS = ("summary", "flamegraph?type=gpu", "timeline", "strips", "devices")


class ViewWithoutMemory(program.TestCase):
    @contextlib.contextmanager
    def view(self, recording, megabytes):
        command = ["sh", "-c", 'ulimit -d "$0" && exec "$@"', megabytes * 1024, program.GPUSONDE, "view", recording,
                   "--listen", "127.0.0.1:0", "--no-open"]
        with program.serving(command) as url:
            yield url

    def status(self, url, question):
        try:
            with urllib.request.urlopen(f"{url}api/v1/{question}", timeout=60) as answer:
                json.load(answer)
                return answer.status
        except urllib.error.HTTPError as refused:
            self.assertIn("--memory-limit-mb", refused.read().decode())
            return refused.code

    def setUp(self):
        super().setUp()
        if re.search(r"^GPUSONDE_SANITIZE:\w+=.+", (program.BUILD / "CMakeCache.txt").read_text(), re.MULTILINE):
            self.skipTest("sanitizers reserve more memory than there would be")

    def test_it_refuses_what_needs_too_much_and_answers_the_rest(self):
        with tempfile.TemporaryDirectory(prefix="gpusonde-view-memory-") as folder:
            trace, recording = f"{folder}/run.sqlite", f"{folder}/run.sonde"
            subprocess.run([program.BUILD / "bin/synthetic_trace", "--format", "nsys", "--ranks", "2", "--kernels",
                            str(KERNELS), "-o", trace], check=True, timeout=60)
            imported = program.run("import", trace, "-o", recording)
            self.assertEqual(imported.returncode, 0, imported.stderr)
            refused = {}
            for megabytes in LIMITS:
                with self.subTest(megabytes), self.view(recording, megabytes) as url:
                    answers = [self.status(url, question) for question in QUESTIONS]
                    self.assertLessEqual(set(answers), {200, 503})
                    refused[megabytes] = answers.count(503)
                    with urllib.request.urlopen(f"{url}healthz", timeout=60) as health:
                        self.assertEqual(health.status, 200)
            self.assertGreater(refused[LIMITS[0]], 0)
            self.assertEqual(refused[LIMITS[-1]], 0)


if __name__ == "__main__":
    sys.exit(unittest.main())
