# SPDX-License-Identifier: Apache-2.0
"""The services of a fleet's private telemetry, each a process: an aggregator, two decryptors, and three devices that report what
a real `gpusonde up`, or `agent` and `serve`, recorded of the simulated GPU."""

import json
import re
import signal
import stat
import subprocess
import sys
import time
import unittest

import program

OWN_MACHINE = "up profiles every GPU program of the machine"
CPUS = 0.25  # it waits for periods of the services
TAKES_S = 85
LIBRARY = program.BUILD / "lib/libgpusonde-inject.so"
TRAIN = program.ROOT / "examples/train/train.py"
PERIOD_S = 10
DEVICES = 3


class FleetServices(program.TestCase):
    def setUp(self):
        super().setUp()
        self.environment = self.simulated_machine()
        self.tokens = self.folder / "tokens"
        (self.folder / "token").write_text(program.new_token(self.tokens, "party", "ingest") + "\n", encoding="ascii")

    def fleet(self, *arguments):
        done = program.run("fleet", *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.strip()

    def start(self, *command):
        process = subprocess.Popen([str(part) for part in command], env=self.environment, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def make_fleet(self, *options):
        """A fleet of two decryptors with tickets for the devices, and its services' common options."""
        keys = {name: self.fleet("keygen", "-o", self.folder / f"{name}.key") for name in ("authority", "one", "two")}
        self.fleet("init", "-o", self.folder / "fleet.json", "--name", "test", "--authority", keys["authority"],
                   "--decryptor", f"one={keys['one']}", "--decryptor", f"two={keys['two']}", "--groups", "1",
                   "--cohorts", "1", "--min-reports", "2", "--period", PERIOD_S, *options)
        self.fleet("enrol", "--fleet", self.folder / "fleet.json", "--key", self.folder / "authority.key",
                   "--count", DEVICES, "-o", self.folder / "tickets")
        self.tickets = sorted((self.folder / "tickets").iterdir())

    def aggregate(self, listen="127.0.0.1:0"):
        process = self.start(program.GPUSONDE, "fleet", "aggregate", "--fleet", self.folder / "fleet.json", "--state",
                             self.folder / "aggregator", "--listen", listen, "--tokens", self.tokens)
        self.url = process.stdout.readline().split(" at ")[1].split("/,")[0]
        return process

    def party(self, command, state, *options):
        return self.start(program.GPUSONDE, "fleet", command, "--fleet", self.folder / "fleet.json", "--state",
                          self.folder / state, "--aggregator", self.url, "--token-file", self.folder / "token", *options)

    def decrypt(self, name):
        return self.party("decrypt", name, "--key", self.folder / f"{name}.key")

    def results(self):
        return json.loads(self.fleet("results", "--aggregator", self.url, "--token-file", self.folder / "token",
                                     "--format", "json"))

    def await_results(self, holds):
        deadline = time.monotonic() + 180
        while time.monotonic() < deadline:
            if holds(results := self.results()):
                return results
            time.sleep(1)
        return self.fail(f"still {results}")

    def test_reports_are_added_and_opened_whoever_is_killed(self):
        self.make_fleet()
        up = self.start(program.GPUSONDE, "up", "--state", self.folder / "up", "--listen", "127.0.0.1:0", "--no-open")
        up_url = next(found.group(1) for line in up.stdout if (found := re.search(r"UI is at (http://\S+[0-9])/", line)))
        self.environment["CUDA_INJECTION64_PATH"] = str(LIBRARY)
        self.start(sys.executable, TRAIN, "--seconds", "600")
        aggregator = self.aggregate()
        one = self.decrypt("one")
        self.decrypt("two")
        for i, ticket in enumerate(self.tickets):
            self.party("report", f"device-{i}", "--ticket", ticket, "--up", up_url)

        first = self.await_results(lambda results: results["reports"] >= DEVICES and results["lists"]["released"] > 0)
        self.assertEqual(first["devices"], DEVICES)
        self.assertEqual(first["lists"]["refused"], 0)
        # Four thousand reports would show above the noise.
        self.assertFalse(any(share["shown"] for share in first["applications"]))

        listen = self.url.removeprefix("http://")
        aggregator.send_signal(signal.SIGKILL)
        aggregator.wait()
        one.send_signal(signal.SIGKILL)
        one.wait()
        self.aggregate(listen)
        self.decrypt("one")
        after = self.await_results(lambda results: results["lists"]["released"] > first["lists"]["released"] + 1)
        self.assertGreaterEqual(after["reports"], first["reports"] + DEVICES)
        self.assertEqual(after["devices"], DEVICES)
        self.assertEqual(after["lists"]["refused"], 0)

        text = self.fleet("results", "--aggregator", self.url, "--token-file", self.folder / "token")
        self.assertIn("no application is beyond the noise yet", text)
        self.assertIn(f"now: {DEVICES} devices enrolled", text)

    def test_hosts_of_a_server_report_of_each_gpu(self):
        self.make_fleet()
        self.environment["SIMGPU_DEVICES"] = "2"
        tokens, agent_token, read_token = (self.folder / name for name in ("serve-tokens", "agent-token", "read-token"))
        agent_token.write_text(program.new_token(tokens, "node", "ingest") + "\n", encoding="ascii")
        read_token.write_text(program.new_token(tokens, "reporter", "read") + "\n", encoding="ascii")
        serve = self.start(program.GPUSONDE, "serve", "--state", self.folder / "serve", "--tokens", tokens, "--listen",
                           "127.0.0.1:0", "--pages-listen", "127.0.0.1:0")
        urls = [re.search(r"(http://\S+[0-9])/", serve.stdout.readline()).group(1) for _ in range(2)]
        self.start(program.GPUSONDE, "agent", "--server", urls[0], "--token-file", agent_token, "--state",
                   self.folder / "agent", "--host", "node-1").stdout.readline()
        self.environment["CUDA_INJECTION64_PATH"] = str(LIBRARY)
        self.start(sys.executable, TRAIN, "--seconds", "600")
        self.aggregate()
        self.decrypt("one")
        self.decrypt("two")
        self.party("report", "reporter", "--ticket", *self.tickets, "--up", urls[1], "--up-token-file", read_token,
                   "--hosts", "all")
        results = self.await_results(lambda results: results["lists"]["released"] > 0)
        self.assertEqual(results["devices"], DEVICES, "each has a ticket")
        self.assertEqual(results["rejected"], 0)
        assigned = json.loads((self.folder / "reporter/gpus.json").read_text(encoding="ascii"))["gpus"]
        self.assertEqual(len(set(assigned.values())), 2, "the third ticket is for no GPU")

    def test_secrets_are_their_owners_alone(self):
        self.make_fleet()
        self.aggregate()
        self.decrypt("one").stdout.readline()
        secrets = [*self.tickets, *self.folder.glob("*.key"), self.folder / "one/state"]
        for path in secrets:
            self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o600, path)
        self.assertEqual(stat.S_IMODE((self.folder / "one").stat().st_mode), 0o700)

    def test_tells_what_is_wrong(self):
        self.make_fleet()
        aggregator = self.aggregate()

        def refused(*arguments):
            done = program.run("fleet", *arguments)
            self.assertNotEqual(done.returncode, 0)
            return done.stderr

        fleet = ["--fleet", self.folder / "fleet.json"]
        to = ["--aggregator", self.url, "--token-file", self.folder / "token"]
        self.assertIn("in use by another gpusonde", refused("aggregate", *fleet, "--state", self.folder / "aggregator",
                                                            "--listen", "127.0.0.1:0", "--tokens", self.tokens))
        self.assertIn("is of no decryptor of the fleet test", refused(
            "decrypt", *fleet, "--state", self.folder / "x", "--key", self.folder / "authority.key", *to))
        self.assertIn("is not the key of the authority", refused(
            "enrol", *fleet, "--key", self.folder / "one.key", "-o", self.folder / "more"))
        self.assertIn("token", refused("results", "--aggregator", self.url))
        other = self.folder / "other.json"
        self.fleet("init", "-o", other, "--name", "other", "--authority", "0" * 64, "--decryptor", "one=" + "1" * 64)
        self.assertIn("of another fleet than other", refused(
            "report", "--fleet", other, "--ticket", self.tickets[0], "--state", self.folder / "x", *to))
        aggregator.kill()
        aggregator.wait()
        self.assertIn("belongs to another fleet", refused(
            "aggregate", "--fleet", other, "--state", self.folder / "aggregator", "--listen", "127.0.0.1:0"))
        self.assertIn("can't be reached", refused("results", *to))


if __name__ == "__main__":
    unittest.main()
