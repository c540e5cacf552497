# SPDX-License-Identifier: Apache-2.0
"""`gpusonde agent` and `gpusonde serve` on loopback: two agents with names of their own, on the simulated GPU."""

import json
import os
import pathlib
import re
import signal
import socket
import struct
import subprocess
import sys
import time
import unittest
import urllib.error
import urllib.request

import program

OWN_MACHINE = "agents profile every GPU program of the machine"
CPUS = 0.125  # it waits for frames of agents
TAKES_S = 105
LIBRARY = program.BUILD / "lib/libgpusonde-inject.so"
LAUNCHES = program.ROOT / "tests/programs/gpu_launches.py"
ROUNDS = 10
COUNTS = {"sgemm": 100 * ROUNDS, "relu": 53 * ROUNDS}
COUNTS_SQL = "SELECT name, count(*) AS n FROM kernels GROUP BY name"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def bomb(content_bytes):
    """A valid zstd frame (RFC 8878) of this many zeros, in 4 bytes for each 128 KiB: blocks of one repeated byte."""
    block = 128 << 10
    count = content_bytes // block
    frame = struct.pack("<IBQ", 0xFD2FB528, 0xE0, count * block)
    for i in range(count):
        frame += struct.pack("<I", (block << 3) | (1 << 1) | (i == count - 1))[:3] + b"\0"
    return frame


class Serve(program.TestCase):
    def setUp(self):
        super().setUp()
        self.environment = self.simulated_machine()
        # Like a rank of a recorded program, so that no governor ends its sessions and all of its work is counted.
        self.injected = dict(self.environment, CUDA_INJECTION64_PATH=str(LIBRARY), GPUSONDE_INJECT_SOCKET="99:1")
        self.tokens = self.folder / "tokens"
        self.token = program.new_token(self.tokens, "nodes", "ingest")
        self.read = {"Authorization": "Bearer " + program.new_token(self.tokens, "ada", "read")}
        self.token_file = self.folder / "token"
        self.token_file.write_text(self.token + "\n", encoding="ascii")
        self.state = self.folder / "state"
        self.errors_file = (self.folder / "errors").open("a", encoding="utf-8")
        self.addCleanup(self.errors_file.close)
        self.port = free_port()
        self.pages = None

    def start(self, *command, environment=None):
        process = subprocess.Popen([str(part) for part in command], env=environment or self.environment,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self.errors_file, text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def errors(self):
        return (self.folder / "errors").read_text(encoding="utf-8")

    def serve(self, *options):
        server = self.start(program.GPUSONDE, "serve", "--state", self.state, "--tokens", self.tokens,
                            "--listen", f"127.0.0.1:{self.port}", "--pages-listen", "127.0.0.1:0", *options)
        self.pages = None
        for line in server.stdout:
            if found := re.search(r"UI is at (http://\S+/)", line):
                self.pages = found.group(1)
                break
        self.assertIsNotNone(self.pages, self.errors())
        return server

    def agent(self, host, *options, token_file=None):
        agent = self.start(program.GPUSONDE, "agent", "--server", f"http://127.0.0.1:{self.port}", "--token-file",
                           token_file or self.token_file, "--state", self.folder / ("agent-" + host), "--host", host,
                           *options)
        self.assertIn("sending to", agent.stdout.readline(), self.errors())
        return agent

    def work(self):
        """Runs a program whose kernels are known, to its end; it loads until the agents profile it."""
        done = subprocess.run([sys.executable, LAUNCHES, str(ROUNDS), "4"], env=self.injected, capture_output=True, text=True,
                              timeout=120, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)

    def stop(self, process):
        process.send_signal(signal.SIGINT)
        process.wait(timeout=60)
        self.assertEqual(process.returncode, 0, self.errors())

    def get(self, path):
        request = urllib.request.Request(self.pages + "api/v1/" + path, headers=self.read)
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)

    def post(self, body, token=None, **parameters):
        """(status, JSON) of a request to the agents' address."""
        query = {"host": "by-hand", "spool": "0" * 31 + "7", "day": int(time.time()) // 86400, "first": 1} | parameters
        address = "&".join(f"{name}={value}" for name, value in query.items())
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/api/v1/frames?{address}", data=body, method="POST",
                                         headers={"Authorization": "Bearer " + (token or self.token)})
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    def await_that(self, holds, what, seconds=60):
        deadline = time.monotonic() + seconds
        while not holds():
            self.assertLess(time.monotonic(), deadline, f"{what}; {self.errors()}")
            time.sleep(0.3)

    def await_frames(self):
        """Waits until the server has received more frames."""
        before = self.get("hosts")["received"]["frames"]
        self.await_that(lambda: self.get("hosts")["received"]["frames"] > before, "frames arrive")

    def days_of(self, host):
        return sorted((self.state / "hosts" / host).glob("*.sonde"))

    def check_host(self, host):
        """Every kernel is there once, and so is every frame and sample; the server has stopped."""
        (day,) = self.days_of(host)
        self.assertEqual({row["name"]: row["n"] for row in self.query(COUNTS_SQL, day)}, COUNTS, host)
        (frames,) = self.query("SELECT count(*) AS n, min(sequence) AS first, max(sequence) AS last FROM batches", day)
        self.assertEqual((frames["first"], frames["last"]), (1, frames["n"]), "no frame is missing")
        self.assertEqual(self.value("SELECT count(*) - count(DISTINCT (cpu, time_ns)) FROM samples WHERE state = 'on_cpu'",
                                    day), 0, "nothing was added twice")
        for table, key in (("stacks", "stack"), ("processes", "process")):
            self.assertEqual(self.value(f"SELECT count(*) FROM samples ANTI JOIN {table} USING ({key})", day), 0,
                             f"every sample has its {table}")
        self.assertEqual(self.query("SELECT host FROM sources GROUP BY host", day), [{"host": host}])
        return day

    def check_usage_of_all(self, hosts):
        """The GPU time of all hosts together is the sum of what each says by itself."""
        usage = self.get("usage?by=host")
        alone = [self.get(f"usage?host={host}&from_us={usage['from_us']}")["total"]["busy_ns"] for host in hosts]
        self.assertGreater(min(alone), 0)

        def is_summed():
            # Hosts are read in the background, and again after 30 s.
            all_of_them = self.get("usage?by=host")
            return (all_of_them["coverage"]["hosts"] == len(hosts) and not all_of_them["coverage"]["gaps"]
                    and abs(all_of_them["total"]["busy_ns"] / sum(alone) - 1) < 1e-6)

        self.await_that(is_summed, "the sums are those of the hosts")

    def check_sql_over_hosts(self, hosts):
        """`gpusonde query --server` gives the rows of each host, and names those without an answer."""
        token = self.folder / "admin-token"
        token.write_text(program.new_token(self.tokens, "root", "admin") + "\n", encoding="ascii")
        server = ("query", "--server", self.pages, "--token-file", token)
        done = program.run(*server, COUNTS_SQL, "--format", "json")
        self.assertEqual(done.returncode, 0, done.stderr)
        for host in hosts:
            self.assertEqual({row["name"]: row["n"] for row in json.loads(done.stdout) if row["host"] == host}, COUNTS)
        done = program.run(*server, "--hosts", hosts[0], "--limit", "1", COUNTS_SQL, "--format", "csv")
        self.assertEqual((done.returncode, len(done.stdout.splitlines())), (0, 2), done.stderr)
        self.assertIn("there are more", done.stderr)
        for sql, said in (("SELECT x FROM kernels", "host " + hosts[0]), ("DROP VIEW kernels", "syntax error")):
            done = program.run(*server, sql)
            self.assertEqual(done.returncode, 1)
            self.assertIn(said, done.stderr)
        self.assertIn("no host 'node-z'", program.run(*server, "--hosts", "node-z", "SELECT 1").stderr)
        long = "SELECT count(*) AS n FROM range(3) WHERE range IN (1, " + ", ".join(map(str, range(10_000, 25_000))) + ")"
        done = program.run(*server, "--hosts", hosts[0], "--format", "csv", long[:-1] + ") -- ?&=+%")
        self.assertEqual(done.stdout, f"host,n\n{hosts[0]},1\n", "too long for an address: " + done.stderr)
        for size, status in ((262_144, 200), (262_145, 413)):
            body = "SELECT 1".ljust(size).encode()
            request = urllib.request.Request(self.pages + "api/v1/query", data=body, method="POST", headers={
                "Authorization": "Bearer " + token.read_text(encoding="ascii").strip(), "Content-Type": "text/plain"})
            try:
                with urllib.request.urlopen(request, timeout=60) as answer:
                    self.assertEqual(answer.status, status)
            except urllib.error.HTTPError as error:
                self.assertEqual(error.code, status, error.read())
        self.assertEqual(program.run(*server, "a.sonde", "SELECT 1").returncode, 2, "no files")

    def check_commands_over_hosts(self, hosts):
        """`gpusonde usage --server` and `diagnose --server` answer for all hosts, or one."""
        token = self.folder / "read-token"
        token.write_text(self.read["Authorization"].split()[1] + "\n", encoding="ascii")

        def ask(command, *options, status=0):
            done = program.run(command, "--server", self.pages, "--token-file", token, *options)
            self.assertEqual(done.returncode, status, done.stderr)
            return done.stdout if status == 0 else done.stderr

        usage = json.loads(ask("usage", "--by", "host", "--price", "1000000", "--format", "json"))
        self.assertEqual(sorted(group["name"] for group in usage["groups"]), list(hosts))
        total = usage["total"]
        self.assertAlmostEqual(total["idle_cost"], total["idle_ns"] / 3600e9 * 1_000_000, places=3)
        self.assertIn(f"{len(hosts)} hosts, summed until 20", ask("usage"))
        lines = ask("usage", "--by", "host", "--format", "csv", "--host", hosts[0]).splitlines()
        self.assertEqual([line.split(",")[0] for line in lines], ["host", f'"{hosts[0]}"'])
        self.assertIn("not seconds (5)", ask("usage", "--from", "5", status=2))
        self.assertIn("2026-01-01 is not after --from 2026-01-02", ask("usage", "--from", "2026-01-02", "--to", "2026-01-01", status=2))
        self.assertEqual("no data of this time\n", ask("usage", "--to", "2020-01-01T00:00:00", "--host", hosts[0]))
        self.assertIn("no host 'node-z'", ask("usage", "--host", "node-z", status=1))
        self.assertIn("or a server with --server", program.run("usage").stderr)

        self.assertIn(f"no incident on {len(hosts)} hosts", ask("diagnose"))
        self.assertEqual(json.loads(ask("diagnose", "--format", "json"))["incidents"], [])
        self.assertIn("no incident: no steps were slow", ask("diagnose", "--host", hosts[0], "--from", "2020-01-01T00:00:00"))
        self.assertIn("give --host", ask("diagnose", "--from", "2020-01-01T00:00:00", status=1))
        self.assertIn("situations is of files", ask("diagnose", "--format", "situations", status=2))

    def test_two_agents_are_two_hosts_with_every_kernel(self):
        server = self.serve()
        agents = [self.agent("node-a"), self.agent("node-b")]
        self.work()
        for agent in agents:
            self.stop(agent)
        self.await_that(lambda: [host["name"] for host in self.get("hosts")["hosts"]] == ["node-a", "node-b"], "both are listed")
        self.assertEqual(self.get("overview")["title"], "2 hosts")
        for host in ("node-a", "node-b"):
            overview = self.get("overview?host=" + host)
            self.assertEqual(overview["kernels"], sum(COUNTS.values()))
            self.assertTrue(overview["simulated"])
            self.assertGreater(self.get(f"flamegraph?type=gpu&host={host}")["total"], 0)
        listed = self.get("hosts")
        self.assertEqual([host["gpus"] for host in listed["hosts"]], [1, 1])
        self.assertGreater(listed["hosts"][0]["busy"], 0)
        self.assertEqual(listed["received"]["refused"], 0)
        self.check_usage_of_all(("node-a", "node-b"))
        self.check_sql_over_hosts(("node-a", "node-b"))
        self.check_commands_over_hosts(("node-a", "node-b"))
        self.stop(server)
        for host in ("node-a", "node-b"):
            day = self.check_host(host)
            done = program.run("diagnose", day, "--format", "json")
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_server_killed_and_restarted_loses_and_doubles_nothing(self):
        server = self.serve()
        agent = self.agent("node-a")
        for kill_after_s in (0, 0.5, 1.3):
            self.await_frames()
            # From now on the agent sends every second, so that a kill often meets a request.
            self.get("overview?host=node-a")
            self.await_frames()
            time.sleep(kill_after_s)
            server.kill()
            server.wait()
            server = self.serve()
        server.kill()
        server.wait()
        self.work()
        server = self.serve()
        self.await_frames()
        self.stop(agent)
        self.stop(server)
        self.check_host("node-a")

    def test_a_server_that_must_spare_memory_closes_files_and_loses_nothing(self):
        server = self.serve("--memory-mb", "1")
        agent = self.agent("node-a")
        self.await_frames()

        def open_files():
            links = [os.readlink(link) for link in pathlib.Path(f"/proc/{server.pid}/fd").iterdir() if link.is_symlink()]
            return [link for link in links if ".sonde" in link]

        for _ in range(2):
            self.await_that(lambda: not open_files(), "the host's file is closed")
            self.await_frames()
        self.work()
        self.stop(agent)
        self.assertEqual(self.get("overview?host=node-a")["kernels"], sum(COUNTS.values()))
        self.stop(server)
        self.check_host("node-a")

    def test_an_agent_killed_while_the_server_is_away_sends_all_after_its_restart(self):
        agent = self.agent("node-a")
        self.work()
        time.sleep(2)  # what a program reports last is spooled a round later
        agent.kill()
        agent.wait()
        server = self.serve()
        agent = self.agent("node-a")
        self.await_that(lambda: self.days_of("node-a"), "frames arrive")
        self.stop(agent)
        self.stop(server)
        self.check_host("node-a")

    def test_a_server_that_hangs_or_is_full_keeps_no_agent_from_its_work(self):
        full = self.serve("--disk-reserve-mb", "1000000000")
        agent = self.agent("node-a")
        self.await_that(lambda: self.get("hosts")["received"]["turned_away"] > 0, "the agent is turned away")
        full.send_signal(signal.SIGSTOP)
        self.work()
        full.send_signal(signal.SIGCONT)
        self.stop(full)
        server = self.serve()
        self.stop(agent)
        self.assertIn("free", self.errors())
        # What the last round could not send in time is in the spool.
        self.stop(self.agent("node-a"))
        self.stop(server)
        self.check_host("node-a")

    def test_hostile_requests_are_refused_and_counted_and_harm_nobody(self):
        server = self.serve()
        status, answer = self.post(b"", token=self.token[:-1] + "x")
        self.assertEqual((status, answer["error"]["code"]), (401, "permission_denied"))
        small = bomb(1 << 20)
        for body, said in ((struct.pack("<I", len(small)) + small, "parts don't fit"),
                           ((lambda frame: struct.pack("<I", len(frame)) + frame)(bomb(1 << 30)), "are allowed"),
                           ((struct.pack("<I", len(small)) + small)[:-1], "the body only"), (b"\xff" * 1000, "the body only")):
            status, answer = self.post(body)
            self.assertEqual(status, 400)
            self.assertIn(said, answer["error"]["message"])
        for parameters in ({"host": "../../etc"}, {"host": ""}, {"day": -1}, {"day": 1 << 40}, {"first": -1}, {"spool": "x"},
                           {"more": 1}):
            self.assertEqual(self.post(b"", **parameters)[0], 400, parameters)
        received = self.get("hosts")["received"]
        self.assertEqual((received["refused"], received["requests"]), (11, 0))
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/healthz", timeout=10) as answer:
            self.assertEqual(answer.read(), b"ok\n")
        with open(f"/proc/{server.pid}/status", encoding="ascii") as file:
            (peak,) = re.findall(r"VmHWM:\s+(\d+) kB", file.read())
        self.assertLess(int(peak), 400_000, "a bomb of 1 GiB takes no such memory")
        self.stop(server)

    def test_an_agent_with_a_wrong_token_waits_until_it_is_right(self):
        wrong = self.folder / "wrong"
        wrong.write_text("another-token-of-somebody\n", encoding="ascii")
        server = self.serve()
        agent = self.agent("node-a", token_file=wrong)
        self.await_that(lambda: "doesn't know the token" in self.errors(), "the agent says why")
        self.assertEqual(self.get("hosts")["hosts"], [])
        wrong.write_text(self.token + "\n", encoding="ascii")
        self.await_that(lambda: self.days_of("node-a"), "it sends")
        self.stop(agent)
        self.stop(server)

    def test_two_agents_of_one_name_are_not_mixed_up(self):
        server = self.serve()
        agent = self.agent("node-a")
        self.await_that(lambda: self.days_of("node-a"), "the first frames arrive")
        status, answer = self.post(b"", host="node-a")
        self.assertEqual(status, 503)
        self.assertIn("another agent sends as host node-a", answer["error"]["message"])
        self.stop(agent)
        self.stop(server)


if __name__ == "__main__":
    unittest.main()
