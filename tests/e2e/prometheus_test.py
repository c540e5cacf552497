# SPDX-License-Identifier: Apache-2.0
"""`GET /metrics` of `gpusonde up`, as Debian's Prometheus and promtool read it, on the simulated GPU; and the alerts of
deploy/prometheus."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request

import program

OWN_MACHINE = "up profiles every GPU program of the machine"
CPUS = 0.125  # it waits for programs with GPU work, and scrapes
TAKES_S = 50
LIBRARY = program.BUILD / "lib/libgpusonde-inject.so"
DASHBOARD = program.ROOT / "deploy/grafana/gpusonde.json"
ALERTS = program.ROOT / "deploy/prometheus/alerts.yaml"
ALERTS_TEST = program.ROOT / "tests/e2e/prometheus/alerts_test.yaml"
LABEL = re.compile(r'(\w+)="((?:\\.|[^"\\])*)"')


def parsed(text):
    """{(name, frozenset of labels): value} of an exposition."""
    series = {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            head, _, value = line.rpartition(" ")
            name, _, labels = head.partition("{")
            series[name, frozenset(LABEL.findall(labels))] = float(value)
    return series


def of(series, name, **labels):
    """The values of a metric whose series have these labels."""
    return [value for (other, of_it), value in series.items() if other == name and labels.items() <= dict(of_it).items()]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Prometheus(program.TestCase):
    def setUp(self):
        super().setUp()
        if shutil.which("prometheus") is None or shutil.which("promtool") is None:
            self.skipTest("no prometheus; install Debian's package prometheus")
        self.environment = self.simulated_machine()
        # Like a rank of a recorded program, so that no governor ends its sessions and all of its work is counted.
        self.injected = dict(self.environment, CUDA_INJECTION64_PATH=str(LIBRARY), GPUSONDE_INJECT_SOCKET="99:1")
        self.token_file = self.folder / "token"
        tokens = self.folder / "tokens"
        self.token = program.new_token(tokens, "prometheus", "metrics")
        self.read_token = program.new_token(tokens, "ada", "read")
        self.token_file.write_text(self.token + "\n", encoding="ascii")
        self.up = self.start(program.GPUSONDE, "up", "--state", self.folder / "state", "--listen", "127.0.0.1:0", "--no-open",
                             "--metrics-listen", "127.0.0.1:0", "--tokens", tokens,
                             environment=self.environment)
        said = ""
        while "metrics for Prometheus are at" not in said:
            line = self.up.stdout.readline()
            self.assertTrue(line, "it says where the metrics are")
            said += line
        self.url, self.metrics_url = re.findall(r"http://\S+", said)

    def start(self, *command, environment):
        process = subprocess.Popen([str(part) for part in command], env=environment, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def scrape(self, url=None, **headers):
        if url is None or url.startswith(self.url):
            headers = {"Authorization": "Bearer " + self.read_token}
        request = urllib.request.Request(url or self.url + "metrics", headers=headers)
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.read().decode()

    def work(self, seconds):
        """Runs a program with GPU work to its end; its process id."""
        worker = self.start(program.BUILD / "bin/hpc", "--seconds", str(seconds), environment=self.injected)
        self.assertEqual(worker.wait(timeout=120), 0)
        return worker.pid

    def settled(self, pid):
        """A scrape after the last work of a process was reported."""
        before, deadline = None, time.monotonic() + 60
        while time.monotonic() < deadline:
            time.sleep(2.5)
            series = parsed(self.scrape())
            counted = of(series, "gpusonde_process_gpu_kernels_total", pid=str(pid))
            if counted and counted == before:
                return series
            before = counted
        return self.fail(f"the kernels of process {pid} are not counted: {before}")

    def prometheus(self):
        """Starts Prometheus; a function that asks it for the result of a query, once it has scraped us."""
        port, address = free_port(), urllib.parse.urlsplit(self.metrics_url).netloc
        config = self.folder / "prometheus.yml"
        config.write_text(json.dumps({"scrape_configs": [{
            "job_name": "gpusonde", "scrape_interval": "1s", "scrape_timeout": "1s",
            "authorization": {"credentials_file": str(self.token_file)},
            "static_configs": [{"targets": [address]}]}]}), encoding="utf-8")
        self.start("prometheus", f"--config.file={config}", f"--storage.tsdb.path={self.folder / 'tsdb'}",
                   f"--web.listen-address=127.0.0.1:{port}", environment=dict(os.environ))

        def ask(query):
            url = f"http://127.0.0.1:{port}/api/v1/query?" + urllib.parse.urlencode({"query": query})
            with urllib.request.urlopen(url, timeout=10) as answer:
                return json.load(answer)["data"]["result"]

        deadline, up = time.monotonic() + 60, []
        while not up and time.monotonic() < deadline:
            time.sleep(0.5)
            try:
                up = [one for one in ask('up{job="gpusonde"}') if one["value"][1] == "1"]
            except (urllib.error.URLError, ConnectionError):
                continue
        self.assertEqual(len(up), 1, "the scrape succeeds")
        return ask

    def test_counters_are_those_of_the_store_and_never_fall(self):
        first = parsed(self.scrape())
        pid = self.work(4)
        series = self.settled(pid)
        for (name, labels), value in first.items():
            if name.startswith("gpusonde_") and name.endswith("_total"):
                self.assertGreaterEqual(series[name, labels], value, name)
        devices = json.loads(self.scrape(self.url + "api/v1/devices"))["devices"]
        self.assertEqual(sum(of(series, "gpusonde_gpu_kernels_total")), sum(one["kernels"] for one in devices))
        self.up.send_signal(signal.SIGINT)
        self.up.wait(timeout=60)
        (day,) = (self.folder / "state/days").glob("*.sonde")
        (kernels,) = self.query("SELECT count(*) AS n, sum(end_ns - start_ns) / 1e9 AS seconds FROM kernels", day)
        self.assertGreater(kernels["n"], 100)
        self.assertEqual(of(series, "gpusonde_process_gpu_kernels_total", pid=str(pid), command="hpc"), [kernels["n"]])
        self.assertAlmostEqual(of(series, "gpusonde_gpu_kernel_seconds_total")[0], kernels["seconds"], places=6)
        for row in self.query("SELECT kind, count(*) AS n, sum(bytes) AS bytes, sum(end_ns - start_ns) / 1e9 AS seconds "
                              "FROM memcpys GROUP BY kind", day):
            self.assertEqual(of(series, "gpusonde_gpu_copies_total", kind=row["kind"]), [row["n"]])
            self.assertEqual(of(series, "gpusonde_process_gpu_copy_bytes_total", kind=row["kind"]), [row["bytes"]])
            self.assertAlmostEqual(of(series, "gpusonde_gpu_copy_seconds_total", kind=row["kind"])[0], row["seconds"], places=6)

    def test_prometheus_scrapes_what_we_answer(self):
        pid = self.work(3)
        series = self.settled(pid)
        ask = self.prometheus()
        (kernels,) = ask(f'gpusonde_process_gpu_kernels_total{{pid="{pid}"}}')
        self.assertEqual(float(kernels["value"][1]), of(series, "gpusonde_process_gpu_kernels_total", pid=str(pid))[0])
        self.assertEqual(kernels["metric"]["command"], "hpc")
        (limit,) = ask("DCGM_FI_DEV_POWER_MGMT_LIMIT")
        self.assertEqual(float(limit["value"][1]), 700)
        self.assertLessEqual({"gpu": "0", "device": "nvidia0", "Hostname": socket.gethostname()}.items(),
                             limit["metric"].items())
        self.assertRegex(limit["metric"]["UUID"], "^GPU-")
        self.assertIn("imulated", limit["metric"]["modelName"])
        # The program has ended, and its memory with it.
        ours = {name for name, _ in series} - {"gpusonde_process_gpu_memory_bytes"}
        there = {one["metric"]["__name__"] for one in ask('count by (__name__) ({job="gpusonde"})')}
        self.assertLessEqual(ours, there, "every metric arrives")

    def test_every_panel_of_the_dashboard_has_data(self):
        panels = [panel for panel in json.loads(DASHBOARD.read_text())["panels"] if panel["type"] != "row"]
        self.assertGreaterEqual(len(panels), 15)
        queries = {(panel["title"], target["refId"]): target["expr"] for panel in panels for target in panel["targets"]}
        ask = self.prometheus()
        self.start(program.BUILD / "bin/hpc", "--seconds", "60", environment=self.injected)
        # An error of the device that does not end the program, as Prometheus shows errors only once there is one.
        subprocess.run([program.SIMGPU, "fault", "0", "xid", "63"], env=self.environment, check=True)
        deadline, empty = time.monotonic() + 40, queries
        while empty and time.monotonic() < deadline:
            time.sleep(1)
            empty = {title: query for title, query in empty.items() if not ask(self.interpolated(query))}
        self.assertEqual(empty, {})

    @staticmethod
    def interpolated(query):
        """A query with Grafana's variables replaced, as Grafana does for `All`."""
        for name, value in {"$__rate_interval": "10s", "$job": "gpusonde", "$instance": ".*"}.items():
            query = query.replace(name, value)
        return query

    def test_promtool_finds_fault_with_the_names_of_others_only(self):
        self.settled(self.work(2))
        done = subprocess.run(["promtool", "check", "metrics"], input=self.scrape(), capture_output=True, text=True, check=False)
        problems = [line for line in (done.stdout + done.stderr).splitlines() if not line.startswith("DCGM_")]
        self.assertEqual(problems, [])

    def test_the_token_is_asked_for_and_the_address_has_nothing_else(self):
        for headers in ({}, {"Authorization": "Bearer " + self.token[:-1] + "x"}):
            with self.assertRaises(urllib.error.HTTPError) as refused:
                self.scrape(self.metrics_url, **headers)
            self.assertEqual(refused.exception.code, 401)
        self.assertIn("gpusonde_build_info", self.scrape(self.metrics_url, Authorization="Bearer " + self.token))
        base = self.metrics_url.removesuffix("metrics")
        with self.assertRaises(urllib.error.HTTPError) as refused:
            self.scrape(base + "api/v1/overview", Authorization="Bearer " + self.token)
        self.assertEqual(refused.exception.code, 404)
        for address in (base, self.url):
            self.assertEqual(self.scrape(address + "healthz"), "ok\n")
        self.assertEqual(self.scrape(self.url + "readyz"), "ready\n")


class Alerts(program.TestCase):
    needs_recording = False

    def setUp(self):
        super().setUp()
        if shutil.which("promtool") is None:
            self.skipTest("no promtool; install Debian's package prometheus")
        self.rules = ALERTS.read_text(encoding="utf-8")

    def test_each_fires_where_it_must_and_nowhere_else(self):
        done = subprocess.run(["promtool", "test", "rules", ALERTS_TEST], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        tested = set(re.findall(r"alertname: (\w+)", ALERTS_TEST.read_text(encoding="utf-8")))
        self.assertEqual(set(re.findall(r"alert: (\w+)", self.rules)), tested)

    def test_they_use_metrics_that_exist(self):
        used = set(re.findall(r"\b(?:gpusonde|DCGM_FI)_\w+", self.rules))
        documented = set(re.findall(r"^\| `(\w+)`", (program.ROOT / "docs/metrics.md").read_text(encoding="utf-8"), re.MULTILINE))
        self.assertGreater(len(used), 10)
        self.assertEqual(used - documented, set())


class Refusals(program.TestCase):
    needs_recording = False

    def test_an_address_beyond_loopback_without_a_token_is_wrong_usage(self):
        done = program.run("up", "--state", self.folder / "state", "--no-open", "--metrics-listen", "0.0.0.0:0")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--tokens", done.stderr)


if __name__ == "__main__":
    unittest.main()
