# SPDX-License-Identifier: Apache-2.0
"""`--otlp` of `gpusonde up` and `agent` and a receiver that answers, asks for later, takes a part, refuses, and hangs."""

import collections
import gzip
import http.server
import re
import signal
import socket
import struct
import subprocess
import threading
import time
import unittest
import urllib.request

import program

OWN_MACHINE = "up profiles every GPU program of the machine"
CPUS = 0.5  # it waits for a receiver that hangs, and for metrics, beside a program that takes a CPU
TAKES_S = 60
PATIENCE = 120  # s; the first round compiles the unwind tables of all running programs
METRICS, PROFILES = "/v1/metrics", "/v1development/profiles"


def fields(data):
    """The fields of a protobuf message as {number: [value, …]}: whole numbers, or bytes."""
    found, at = collections.defaultdict(list), 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        key = varint()
        kind = key & 7
        if kind == 0:
            value = varint()
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
            value, at = data[at:at + size], at + size
        else:
            assert kind == 2, f"wire type {kind}"
            size = varint()
            value, at = data[at:at + size], at + size
        found[key >> 3].append(value)
    return found


def points(request):
    """{name of the metric: [value of its first data point, …]} and the times of all points, of an ExportMetricsServiceRequest."""
    values, times, count = {}, set(), 0
    for scope in fields(fields(request)[1][0])[2]:
        for metric in map(fields, fields(scope)[2]):
            (data,) = metric[5] or metric[7]
            of = [fields(point) for point in fields(data)[1]]
            count += len(of)
            times |= {struct.unpack("<Q", point[3][0])[0] for point in of}
            values[metric[1][0].decode()] = [struct.unpack("<d", point[4][0])[0] if point[4]
                                             else struct.unpack("<q", point[6][0])[0] for point in of]
    return values, times, count


def packed(data):
    """The whole numbers of a packed field."""
    numbers, value, shift = [], 0, 0
    for byte in data:
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            numbers.append(value)
            value = shift = 0
    return numbers


def profiles(request):
    """[(type, begin, end, sum)] of the profiles of an ExportProfilesServiceRequest."""
    message, found = fields(request), []
    texts = [text.decode() for text in fields(message[2][0])[5]]
    for resource in map(fields, message[1]):
        for scope in map(fields, resource[2]):
            for profile in map(fields, scope[2]):
                begin = struct.unpack("<Q", profile[3][0])[0]
                total = sum(sum(packed(value)) for sample in map(fields, profile[2]) for value in sample[4])
                found.append((texts[fields(profile[1][0])[1][0]], begin, begin + profile[4][0], total))
    return found


def partial_success(rejected, message):
    """An Export…ServiceResponse with partial_success."""
    inside = bytes([0x08, rejected, 0x12, len(message)]) + message.encode()
    return bytes([0x0A, len(inside)]) + inside


class Receiver:
    """An HTTP server on loopback; `answer(path, number)` gives (status, headers, body), or None to hang."""

    def __init__(self, test, answer=lambda path, number: (200, {}, b"")):
        self.requests = collections.defaultdict(list)  # by path: (time, headers, body, status)
        self.changed = threading.Condition()
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):  # pylint: disable=invalid-name
                body = gzip.decompress(self.rfile.read(int(self.headers["Content-Length"])))
                with receiver.changed:
                    got = receiver.requests[self.path]
                    answered = answer(self.path, len(got))
                    got.append((time.monotonic(), dict(self.headers), body, answered[0] if answered else None))
                    receiver.changed.notify_all()
                if answered is None:
                    receiver.done.wait(300)
                    return
                status, headers, reply = answered
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(reply)))
                self.end_headers()
                self.wfile.write(reply)

            def log_message(self, *_):
                pass

        self.done = threading.Event()
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        test.addCleanup(self.server.server_close)
        test.addCleanup(self.server.shutdown)
        test.addCleanup(self.done.set)
        self.test = test

    def wait(self, path, enough):
        """The requests of a path, once `enough` holds of them."""
        with self.changed:
            arrived = self.changed.wait_for(lambda: enough(self.requests[path]), timeout=PATIENCE)
            self.test.assertTrue(arrived, f"{len(self.requests[path])} requests to {path}")
            return list(self.requests[path])

    def accepted(self, path):
        with self.changed:
            return [body for _, _, body, status in self.requests[path] if status == 200]


class Otlp(program.TestCase):
    def setUp(self):
        super().setUp()
        self.environment = self.simulated_machine()
        self.state = self.folder / "state"

    def start(self, receiver, *options, command=("up",)):
        """Starts `gpusonde up`; its URL is in .url."""
        more = ("--listen", "127.0.0.1:0", "--no-open") if command == ("up",) else ()
        running = subprocess.Popen(
            [str(part) for part in (program.GPUSONDE, *command, "--state", self.state, *more, "--otlp", receiver.url,
                                    "--otlp-metrics-every", 1, *options)],
            env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(running.communicate)
        self.addCleanup(running.kill)
        if command == ("up",):
            running.url = next(found.group() for line in running.stdout if (found := re.search(r"http://\S+/", line)))
        return running

    def stop(self, running):
        """Its messages, after a stop."""
        began = time.monotonic()
        running.send_signal(signal.SIGINT)
        _, errors = running.communicate(timeout=60)
        self.assertEqual(running.returncode, 0, errors)
        return errors, time.monotonic() - began

    def counts(self, running, signal_name):
        """What /metrics says of what was sent: {outcome: items}, with retries and waiting."""
        with urllib.request.urlopen(running.url + "metrics", timeout=30) as answer:
            text = answer.read().decode()
        found = {outcome: int(value) for outcome, value in
                 re.findall(rf'^gpusonde_otlp_items_total{{signal="{signal_name}",outcome="(\w+)"}} (\d+)$', text, re.MULTILINE)}
        for name in ("retries_total", "waiting"):
            (found[name],) = map(int, re.findall(rf'^gpusonde_otlp_{name}{{signal="{signal_name}"}} (\d+)$', text, re.MULTILINE))
        return found

    def burn(self, seconds):
        burner = subprocess.Popen([program.HOTPATHS, "--threads", "1", "--seconds", str(seconds)], stdout=subprocess.DEVNULL)
        self.addCleanup(burner.wait)
        self.addCleanup(burner.kill)

    def test_every_sample_is_in_one_profile_and_metrics_are_those_of_the_gpu(self):
        receiver = Receiver(self)
        headers = self.folder / "headers"
        headers.write_text("# of the collector\nAuthorization: Bearer 0123456789abcdef\nX-Scope-OrgID: 7\n")
        up = self.start(receiver, "--otlp-headers", headers, "--otlp-profiles-every", 2)
        self.burn(60)
        receiver.wait(PROFILES, lambda got: len(got) >= 4)
        got = receiver.wait(METRICS, lambda got: len(got) >= 4)
        _, sent, body, _ = got[-1]
        self.assertEqual((sent["Content-Encoding"], sent["Content-Type"]), ("gzip", "application/x-protobuf"))
        self.assertEqual((sent["Authorization"], sent["X-Scope-OrgID"]), ("Bearer 0123456789abcdef", "7"))
        values, _, _ = points(body)
        self.assertEqual(len(values["hw.gpu.utilization"]), len(values["hw.power"]))
        self.assertEqual(values["gpusonde.gpu.power.limit"][0], 700)
        self.assertGreater(values["hw.gpu.memory.limit"][0], 1 << 30)
        errors, _ = self.stop(up)
        self.assertNotIn("dropped", errors)
        sums = [one for body in receiver.accepted(PROFILES) for one in profiles(body)]
        counted = [one for one in sums if one[0] == "samples"]
        begin, end = min(one[1] for one in counted), max(one[2] for one in counted)
        (day,) = (self.state / "days").glob("*.sonde")
        stored = f"FROM samples WHERE state = 'on_cpu' AND time_ns >= {begin} AND time_ns < {end}"
        self.assertGreater(sum(one[3] for one in counted), 20)
        self.assertEqual(sum(one[3] for one in counted), self.value(f"SELECT count(*) AS n {stored}", day))
        self.assertEqual(sum(one[3] for one in sums if one[0] == "cpu"),
                         self.value(f"SELECT sum(weight_ns)::BIGINT AS n {stored}", day))

    def test_nothing_is_lost_while_the_receiver_asks_for_later(self):
        receiver = Receiver(self, lambda path, number: (503, {"Retry-After": "2"}, b"busy") if number < 3 else (200, {}, b""))
        up = self.start(receiver, "--otlp-profiles-every", 0)
        got = receiver.wait(METRICS, lambda got: len(got) >= 12)
        asked = [at for at, _, _, _ in got]
        for before, after in zip(asked[:3], asked[1:4]):
            self.assertGreaterEqual(after - before, 2)
        self.assertEqual(len({body for _, _, body, _ in got[:4]}), 1, "the same request again")
        counts = self.counts(up, "metrics")
        self.assertEqual((counts["retries_total"], counts["dropped"], counts["rejected"]), (3, 0, 0))
        self.assertNotIn(PROFILES, receiver.requests)
        self.stop(up)
        moments = sorted(min(points(body)[1]) for body in receiver.accepted(METRICS))
        self.assertEqual(len(moments), len(set(moments)), "each is accepted once")
        gaps = [(later - earlier) / 1e9 for earlier, later in zip(moments, moments[1:])]
        self.assertLess(max(gaps), 3.5, "a second apart, also while the receiver was busy")

    def test_what_a_receiver_rejects_or_refuses_is_counted(self):
        answers = {METRICS: (200, {}, partial_success(5, "too old")), PROFILES: (404, {}, b"no such path")}
        receiver = Receiver(self, lambda path, number: answers[path])
        up = self.start(receiver, "--otlp-profiles-every", 1)
        self.burn(60)
        receiver.wait(PROFILES, lambda got: len(got) >= 2)
        receiver.wait(METRICS, lambda got: len(got) >= 3)
        deadline = time.monotonic() + 30
        while self.counts(up, "profiles")["dropped"] < 4 and time.monotonic() < deadline:
            time.sleep(0.2)
        counts, refused = self.counts(up, "metrics"), self.counts(up, "profiles")
        self.assertGreaterEqual(refused["dropped"], 4, "two profiles a request")
        self.assertEqual((refused["accepted"], refused["retries_total"]), (0, 0))
        self.assertGreaterEqual(counts["rejected"], 15)
        self.assertEqual(counts["rejected"] % 5, 0)
        self.assertEqual((counts["dropped"], counts["retries_total"]), (0, 0))
        errors, _ = self.stop(up)
        self.assertIn("too old", errors)
        self.assertIn("answers 404: no such path", errors)

    def test_a_receiver_that_hangs_keeps_nobody_waiting_and_what_waits_at_the_end_is_counted(self):
        receiver = Receiver(self, lambda path, number: None)
        up = self.start(receiver, "--otlp-profiles-every", 0)
        self.burn(60)
        receiver.wait(METRICS, lambda got: len(got) >= 1)
        before = self.samples(up)
        deadline = time.monotonic() + 60
        while self.samples(up) <= before and time.monotonic() < deadline:
            time.sleep(0.5)
        self.assertGreater(self.samples(up), before, "sampling goes on")
        receiver.wait(METRICS, lambda got: len(got) >= 2)  # after its time is over
        errors, seconds = self.stop(up)
        self.assertLess(seconds, 30)
        self.assertRegex(errors, r"otlp: of metrics, 0 accepted, 0 rejected, [1-9]\d* dropped")
        self.assertIn("no response in time; requests wait", errors)

    def samples(self, up):
        with urllib.request.urlopen(up.url + "metrics", timeout=30) as answer:
            return int(re.search(r"^gpusonde_samples_total (\d+)$", answer.read().decode(), re.MULTILINE)[1])

    def test_an_agent_sends_metrics_too(self):
        receiver = Receiver(self)
        token = self.folder / "token"
        token.write_text("0123456789abcdef\n")
        self.state.mkdir()
        with socket.socket() as nobody:
            nobody.bind(("127.0.0.1", 0))
            agent = self.start(receiver, command=("agent", "--server", f"http://127.0.0.1:{nobody.getsockname()[1]}",
                                                  "--token-file", token))
            got = receiver.wait(METRICS, lambda got: any("hw.power" in points(body)[0] for _, _, body, _ in got))
            self.assertTrue(got)
            self.stop(agent)
        self.assertNotIn(PROFILES, receiver.requests)


class Refusals(program.TestCase):
    needs_recording = False

    def refusal(self, *options):
        done = program.run("up", "--state", self.folder / "state", "--no-open", "--listen", "127.0.0.1:0", *options)
        return done.returncode, done.stderr

    def test_plain_http_beyond_loopback_is_wrong_usage_unless_allowed(self):
        status, message = self.refusal("--otlp", "http://192.0.2.1:4318")
        self.assertEqual(status, 2)
        self.assertIn("unencrypted: use https://", message)
        self.assertIn("--otlp-insecure", message)

    def test_an_address_that_is_none_is_wrong_usage(self):
        for address in ("collector:4318", "http://127.0.0.1:4318/?a=b"):
            status, message = self.refusal("--otlp", address)
            self.assertEqual(status, 2, address)
            self.assertIn(address, message)

    def test_a_file_without_headers_is_refused_without_its_text(self):
        headers = self.folder / "headers"
        headers.write_text("s3cret\n")
        if not program.can_record():
            self.skipTest("gpusonde can't record on this machine: see `gpusonde doctor`")
        status, message = self.refusal("--otlp", "http://127.0.0.1:4318", "--otlp-headers", headers)
        self.assertEqual(status, 1)
        self.assertIn(f"line 1 of {headers}", message)
        self.assertNotIn("s3cret", message)


if __name__ == "__main__":
    unittest.main()
