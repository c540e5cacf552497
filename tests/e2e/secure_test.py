# SPDX-License-Identifier: Apache-2.0
"""TLS and tokens of `gpusonde serve`, `up`, `view` and `agent`, with certificates of Debian's openssl, Python's ssl and curl."""

import contextlib
import datetime
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request

import program

OWN_MACHINE = "agents profile every GPU program of the machine"
CPUS = 0.25  # it waits for agents' retries
TAKES_S = 50


class Authority:
    """A certificate authority in a folder."""

    def __init__(self, folder, name):
        self.folder, self.name = folder, name
        self.certificate = folder / f"{name}.crt"
        self.openssl("req", "-x509", *self.key(name), "-out", self.certificate, "-days", "30", "-subj", f"/CN={name}")

    def openssl(self, *arguments):
        done = subprocess.run(["openssl", *map(str, arguments)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr

    def key(self, name):
        return ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", self.folder / f"{name}.key")

    def sign(self, name, until=datetime.timedelta(days=30), names="DNS:localhost,IP:127.0.0.1"):
        """A new certificate and key, as (file, file)."""
        request, extensions, certificate = (self.folder / f"{name}.{kind}" for kind in ("csr", "ext", "new"))
        extensions.write_text("subjectAltName=" + names, encoding="ascii")
        self.openssl("req", *self.key(name), "-out", request, "-subj", f"/CN={name}")
        database = self.folder / f"{name}.index"
        database.write_text("", encoding="ascii")
        config = self.folder / f"{name}.conf"
        config.write_text(f"[ca]\ndefault_ca=d\n[d]\ndatabase={database}\nnew_certs_dir={self.folder}\nrand_serial=yes\n"
                          "default_md=sha256\npolicy=p\n[p]\ncommonName=supplied\n", encoding="ascii")
        end = datetime.datetime.now(datetime.timezone.utc) + until
        self.openssl("ca", "-batch", "-notext", "-config", config, "-cert", self.certificate, "-keyfile",
                     self.folder / f"{self.name}.key", "-in", request, "-out", certificate, "-extfile", extensions,
                     "-startdate", (end - datetime.timedelta(days=60)).strftime("%Y%m%d%H%M%SZ"), "-enddate", end.strftime("%Y%m%d%H%M%SZ"))
        final = self.folder / f"{name}.crt"
        os.replace(certificate, final)
        return final, self.folder / f"{name}.key"


class SecureTestCase(program.TestCase):
    needs_recording = False

    def setUp(self):
        super().setUp()
        if shutil.which("openssl") is None or shutil.which("curl") is None:
            self.skipTest("needs Debian's packages openssl and curl")
        self.authority = Authority(self.folder, "ca")
        self.certificate, self.key = self.authority.sign("server")
        self.tokens = self.folder / "tokens"
        self.read_token = program.new_token(self.tokens, "ada", "read")
        self.ingest_token = program.new_token(self.tokens, "nodes", "ingest")
        self.token_file = self.folder / "token"
        self.token_file.write_text(self.ingest_token, encoding="ascii")
        self.errors_file = (self.folder / "errors").open("a", encoding="utf-8")
        self.addCleanup(self.errors_file.close)

    def errors(self):
        return (self.folder / "errors").read_text(encoding="utf-8")

    def start(self, *command):
        process = subprocess.Popen([program.GPUSONDE, *map(str, command)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=self.errors_file, text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def serve(self, *options):
        server = self.start("serve", "--state", self.folder / "state", "--tokens", self.tokens, "--tls-cert", self.certificate,
                            "--tls-key", self.key, "--listen", "127.0.0.1:0", "--pages-listen", "127.0.0.1:0", *options)
        said = server.stdout.readline() + server.stdout.readline()
        self.agents_url, self.url = re.findall(r"https://\S+:\d+/", said) or self.fail(said + self.errors())
        return server

    def agent(self, *options, authority=None):
        agent = self.start("agent", "--server", self.agents_url.rstrip("/"), "--token-file", self.token_file, "--tls-ca",
                           authority or self.authority.certificate, "--state", self.folder / "agent", "--host", "node", *options)
        self.assertIn("sending to", agent.stdout.readline(), self.errors())
        return agent

    def stop(self, process):
        process.send_signal(signal.SIGINT)
        process.wait(timeout=60)
        self.assertEqual(process.returncode, 0, self.errors())

    def context(self, authority=None):
        return ssl.create_default_context(cafile=str((authority or self.authority).certificate))

    def get(self, path, url=None, token=None, context=None, **headers):
        """(status, text) of a GET."""
        if token:
            headers["Authorization"] = "Bearer " + token
        request = urllib.request.Request((url or self.url) + path, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=30, context=context or self.context()) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def port(self, url=None):
        return int((url or self.url).rsplit(":", 1)[1].strip("/"))

    def await_that(self, holds, what, seconds=60):
        deadline = time.monotonic() + seconds
        while not holds():
            self.assertLess(time.monotonic(), deadline, f"{what}; {self.errors()}")
            time.sleep(0.2)


class Listeners(SecureTestCase):
    def test_tls_1_2_and_1_3_and_nothing_older(self):
        self.serve()
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            context = self.context()
            context.minimum_version = context.maximum_version = version
            self.assertEqual(self.get("healthz", context=context), (200, "ok\n"))
        done = subprocess.run(["curl", "-s", "--tls-max", "1.1", "--tlsv1.0", "--ciphers", "ALL:@SECLEVEL=0", "--cacert",
                               self.authority.certificate, self.url + "healthz"], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout), (35, ""))

    def test_a_new_certificate_is_served_without_a_restart_and_without_cutting_connections(self):
        self.serve()

        def serial(connection):
            return connection.getpeercert()["serialNumber"]

        def ask(connection):
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            return connection.recv(4096).startswith(b"HTTP/1.1 200")

        with self.context().wrap_socket(socket.create_connection(("127.0.0.1", self.port())), server_hostname="localhost") as old:
            self.assertTrue(ask(old))
            before = serial(old)
            self.key.write_text("garbage", encoding="ascii")
            self.assertEqual(self.get("healthz")[0], 200, "files that can't be used change nothing")
            self.await_that(lambda: "those from before stay in use" in self.errors(), "the log says so")
            self.authority.sign("server")
            with self.context().wrap_socket(socket.create_connection(("127.0.0.1", self.port())), server_hostname="localhost") as new:
                self.assertNotEqual(serial(new), before)
                self.assertTrue(ask(new))
            self.assertTrue(ask(old), "the connection from before lives on")

    def test_garbage_plain_http_and_hanging_handshakes_are_answered_or_ended_and_harm_nobody(self):
        server = self.serve()
        status, said = self.get("healthz", url=f"http://127.0.0.1:{self.port()}/")
        self.assertEqual(status, 400)
        self.assertIn("this address speaks TLS only: use https://", said)
        with contextlib.ExitStack() as hanging:
            silent = [hanging.enter_context(socket.create_connection(("127.0.0.1", self.port()))) for _ in range(700)]
            for connection in silent[1::2]:
                with contextlib.suppress(OSError):  # closed to make room for others
                    connection.sendall(b"\x16\x03\x01\x02\x00\x01\x00")
            self.assertEqual(self.get("healthz"), (200, "ok\n"), "hanging handshakes make room")
            began = time.monotonic()
            silent[-1].settimeout(30)
            self.assertEqual(silent[-1].recv(1000), b"", "a hanging handshake is ended")
            self.assertLess(time.monotonic() - began, 20)
        for garbage in (b"\0" * 1000, b"\x16\x03\x01" + b"\xff" * 5000, os.urandom(5000), b"SSH-2.0-x\r\n"):
            with socket.create_connection(("127.0.0.1", self.port()), timeout=30) as connection:
                with contextlib.suppress(OSError):
                    connection.sendall(garbage)
                    while connection.recv(4096):
                        pass
        self.assertEqual(self.get("healthz"), (200, "ok\n"))
        self.stop(server)

    def test_beyond_loopback_there_is_tls_and_tokens_or_a_frightening_flag(self):
        up = ("up", "--state", self.folder / "up", "--no-open")
        serve = ("serve", "--state", self.folder / "state", "--tokens", self.tokens)
        view = ("view", "missing.sonde", "--no-open")
        tls, tokens = ("--tls-cert", self.certificate, "--tls-key", self.key), ("--tokens", self.tokens)
        for command, missing in ((up, "TLS (--tls-cert and --tls-key) and tokens (--tokens)"), ((*up, *tls), "needs tokens (--tokens)"),
                                 ((*up, *tokens), "needs TLS (--tls-cert and --tls-key)"), (view, "TLS"), (serve, "TLS")):
            for address in ("0.0.0.0:0", "[::]:0"):
                done = program.run(*command, "--listen", address)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(missing, done.stderr)
        done = program.run(*up, "--metrics-listen", "0.0.0.0:0")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--metrics-listen", done.stderr)
        server = self.start(*serve, "--insecure", "--listen", "0.0.0.0:0", "--pages-listen", "0.0.0.0:0")
        self.assertIn("agents send to http://", server.stdout.readline(), self.errors())
        self.await_that(lambda: "anyone on the network path" in self.errors(), "it says what that means")
        self.stop(server)


class Sessions(SecureTestCase):
    def post(self, path, body="{}", cookie=None, **headers):
        headers = {"Content-Type": "application/json"} | headers | ({"Cookie": cookie} if cookie else {})
        request = urllib.request.Request(self.url + path, data=body.encode(), headers=headers, method="POST")
        try:
            with urllib.request.urlopen(request, timeout=30, context=self.context()) as answer:
                return answer.status, answer.headers["Set-Cookie"]
        except urllib.error.HTTPError as error:
            return error.code, error.headers["Set-Cookie"]

    def sign_in(self, token):
        return self.post("api/v1/sign-in", json.dumps({"token": token}), Origin=self.url.rstrip("/"))

    def status(self, cookie):
        return self.get("api/v1/hosts", Cookie=cookie)[0]

    def test_a_token_becomes_a_session_until_sign_out_or_revocation(self):
        self.serve()
        self.assertEqual(self.get("")[0], 200, "the page itself needs no token")
        self.assertEqual(json.loads(self.get("api/v1/session")[1]), {"needs_sign_in": True, "name": "", "scope": ""})
        for token, code in ((self.read_token + "x", 401), ("", 401), (self.ingest_token, 403)):
            self.assertEqual(self.sign_in(token), (code, None))
        code, cookie = self.sign_in(self.read_token)
        self.assertEqual(code, 200)
        self.assertRegex(cookie, rf"^__Host-gpusonde-{self.port()}=\w+; Path=/; HttpOnly; SameSite=Strict; Max-Age=43200; Secure$")
        cookie = cookie.partition(";")[0]
        self.assertEqual(self.status(cookie), 200)
        self.assertEqual(json.loads(self.get("api/v1/session", Cookie=cookie)[1]),
                         {"needs_sign_in": False, "name": "ada", "scope": "read"})
        self.assertEqual(self.post("api/v1/sign-out", cookie=cookie)[0], 403, "without an Origin")
        self.assertEqual(self.post("api/v1/sign-out", cookie=cookie, Origin="https://evil.example")[0], 403)
        self.assertEqual(self.status(cookie), 200)
        code, cleared = self.post("api/v1/sign-out", cookie=cookie, Origin=self.url.rstrip("/"))
        self.assertEqual(code, 200)
        self.assertIn("=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0", cleared)
        self.assertEqual(self.status(cookie), 401)
        cookies = [self.sign_in(self.read_token)[1].partition(";")[0] for _ in range(2)]
        self.assertEqual([self.status(cookie) for cookie in cookies], [200, 200])
        self.assertEqual(program.run("token", "revoke", "--tokens", self.tokens, "--name", "ada").returncode, 0)
        self.assertEqual([self.status(cookie) for cookie in cookies], [401, 401], "at once, and without a restart")
        self.assertEqual(self.get("api/v1/hosts", token=self.read_token)[0], 401)
        again = program.new_token(self.tokens, "ada", "read")
        self.assertEqual(self.get("api/v1/hosts", token=again)[0], 200)
        self.assertEqual(self.status(cookies[0]), 401, "sessions don't come back with the name")

    def test_hostile_sign_ins_are_refused(self):
        self.serve()
        origin = self.url.rstrip("/")
        for body, headers, code in (("{}", {}, 400), ("[]", {}, 400), ('{"token":1}', {}, 400), ("[" * 4000, {}, 400),
                                    ("x" * 9000, {}, 413), ('{"token":"x"}', {"Content-Type": "text/plain"}, 415),
                                    (json.dumps({"token": self.read_token}), {"Origin": "https://evil.example"}, 403),
                                    (json.dumps({"token": self.read_token}), {"Sec-Fetch-Site": "same-site"}, 403)):
            self.assertEqual(self.post("api/v1/sign-in", body, **({"Origin": origin} | headers))[0], code, body[:40])
        self.assertEqual(self.post("api/v1/overview", Authorization="Bearer " + self.read_token)[0], 403)


class Agents(SecureTestCase):
    needs_recording = True

    def frames(self):
        return json.loads(self.get("api/v1/hosts", token=self.read_token)[1])["received"]["frames"]

    def test_a_token_revoked_while_an_agent_sends_leaves_its_data_in_the_spool(self):
        server = self.serve()
        agent = self.agent()
        self.await_that(lambda: self.frames() > 0, "frames arrive")
        program.run("token", "revoke", "--tokens", self.tokens, "--name", "nodes")
        self.await_that(lambda: "it was revoked, or is for another server; data stays in the spool" in self.errors(), "it says so")
        self.assertIsNone(agent.poll(), "it goes on")
        frames = self.frames()
        time.sleep(3)
        self.assertEqual(self.frames(), frames)
        self.token_file.write_text(program.new_token(self.tokens, "nodes-2", "ingest"), encoding="ascii")
        self.await_that(lambda: self.frames() > frames, "it sends with the new token")
        self.stop(agent)
        self.stop(server)
        (day,) = (self.folder / "state/hosts/node").glob("*.sonde")
        (frames,) = self.query("SELECT count(*) AS n, min(sequence) AS first, max(sequence) AS last FROM batches", day)
        self.assertEqual((frames["first"], frames["last"]), (1, frames["n"]), "no frame is missing")

    def test_wrong_expired_and_future_certificates_of_the_server_are_named(self):
        stranger = Authority(self.folder, "stranger")
        self.serve()
        agent = self.agent(authority=stranger.certificate)
        self.await_that(lambda: f"its CA is not in {stranger.certificate}" in self.errors(), "a wrong authority is named")
        agent.kill()
        agent.wait()
        self.authority.sign("server", until=datetime.timedelta(hours=-1))
        agent = self.agent()
        self.await_that(lambda: "certificate has expired; this machine's clock says" in self.errors(), "an expired one is named")
        self.assertIn("has expired: clients will refuse it", self.errors(), "the server says so too")
        self.authority.sign("server", until=datetime.timedelta(days=120))
        self.await_that(lambda: "certificate is not yet valid; this machine's clock says" in self.errors(), "so is one of later")
        self.authority.sign("server", names="DNS:elsewhere.example")
        self.await_that(lambda: "it is not for the name 127.0.0.1" in self.errors(), "so is another name")
        self.authority.sign("server")
        self.await_that(lambda: self.frames() > 0, "with a good one it sends all", 120)
        self.stop(agent)

    def test_agents_need_a_certificate_where_the_server_asks_for_one(self):
        stranger = Authority(self.folder, "stranger")
        server = self.serve("--tls-client-ca", self.authority.certificate)
        self.assertEqual(self.get("healthz")[0], 200, "pages need none")
        agent = self.agent()
        self.await_that(lambda: "the server refuses clients without a certificate" in self.errors(), "it says that one is needed")
        agent.kill()
        agent.wait()
        certificate, key = stranger.sign("node")
        agent = self.agent("--tls-cert", certificate, "--tls-key", key)
        self.await_that(lambda: f"the server refuses the certificate in {certificate}" in self.errors(), "a stranger's is refused")
        self.assertIn("refused the certificate of a client at 127.0.0.1", self.errors())
        self.authority.sign("node")  # it is read anew
        self.await_that(lambda: self.frames() > 0, "with a good one it sends")
        self.stop(agent)
        self.stop(server)


class Metrics(SecureTestCase):
    needs_recording = True

    def ask(self, port, query):
        """The result of a query as {labels: value}, by Prometheus."""
        address = f"http://127.0.0.1:{port}/api/v1/query?" + urllib.parse.urlencode({"query": query})
        with urllib.request.urlopen(address, timeout=10) as answer:
            return {tuple(sorted(one["metric"].items())): float(one["value"][1]) for one in json.load(answer)["data"]["result"]}

    def test_debians_prometheus_scrapes_the_servers_own_health_over_tls(self):
        if shutil.which("prometheus") is None or shutil.which("promtool") is None:
            self.skipTest("no prometheus; install Debian's package prometheus")
        self.serve()
        agent = self.agent()
        self.token_of_prometheus = self.folder / "scraper"
        self.token_of_prometheus.write_text(program.new_token(self.tokens, "prometheus", "metrics"), encoding="ascii")
        self.get("healthz", url=f"http://127.0.0.1:{self.port(self.agents_url)}/")
        self.get("api/v1/hosts", token=self.read_token)
        self.get("api/v1/hosts")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        config = self.folder / "prometheus.yml"
        config.write_text(json.dumps({"scrape_configs": [{
            "job_name": "gpusonde", "scheme": "https", "scrape_interval": "1s", "scrape_timeout": "1s",
            "tls_config": {"ca_file": str(self.authority.certificate)},
            "authorization": {"credentials_file": str(self.token_of_prometheus)},
            "static_configs": [{"targets": [f"127.0.0.1:{self.port()}"]}]}]}), encoding="utf-8")
        prometheus = subprocess.Popen(["prometheus", f"--config.file={config}", f"--storage.tsdb.path={self.folder / 'tsdb'}",
                                       f"--web.listen-address=127.0.0.1:{port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(prometheus.wait)
        self.addCleanup(prometheus.kill)

        def value(query):
            with contextlib.suppress(OSError):
                return next(iter(self.ask(port, query).values()), None)
            return None

        self.await_that(lambda: (value("gpusonde_serve_frames_total") or 0) > 0, "Prometheus has frames")
        self.assertEqual(value("up"), 1)
        self.assertEqual(value("gpusonde_serve_agents"), 1)
        self.assertGreater(value('gpusonde_serve_received_bytes_total'), 0)
        self.assertLess(abs(value('gpusonde_serve_host_spool_age_seconds{host="node"}')), 60)
        self.assertGreaterEqual(value('gpusonde_queries_total{path="/api/v1/hosts"}'), 1)
        self.assertGreater(value('gpusonde_query_seconds_total{path="/api/v1/hosts"}'), 0)
        self.assertEqual(value('gpusonde_tls_failures_total{address="agents",reason="not_tls"}'), 1)
        self.assertGreaterEqual(value('gpusonde_http_denied_total{address="pages"}'), 1)
        expires_in_days = value("gpusonde_tls_certificate_expiry_timestamp_seconds - time()") / 86400
        self.assertTrue(29 < expires_in_days < 31, expires_in_days)
        text = self.get("metrics", token=self.read_token)[1]
        done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout + done.stderr), (0, ""))
        self.stop(agent)


class Others(SecureTestCase):
    needs_recording = True

    def test_up_and_its_clients_use_tls_and_tokens(self):
        up = self.start("up", "--state", self.folder / "up", "--no-open", "--listen", "127.0.0.1:0", "--metrics-listen",
                        "127.0.0.1:0", "--tls-cert", self.certificate, "--tls-key", self.key, "--tokens", self.tokens)
        said = "".join(up.stdout.readline() for _ in range(3))
        self.url, metrics = re.findall(r"https://\S+", said)
        scraper = program.new_token(self.tokens, "prometheus", "metrics")
        self.assertIn("gpusonde_build_info", self.get("", url=metrics, token=scraper)[1])
        self.assertEqual(self.get("metrics", token=scraper)[0], 200)
        self.assertEqual(self.get("api/v1/overview", token=scraper)[0], 403)
        secret = self.folder / "secret"
        secret.write_text(self.read_token, encoding="ascii")
        top = ("top", "--once", "--url", self.url.rstrip("/"))
        done = program.run(*top, "--tls-ca", self.authority.certificate, "--token-file", secret)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("give its file with --tls-ca", program.run(*top).stderr)
        self.assertIn("Give the file that has the token with --token-file",
                      program.run(*top, "--tls-ca", self.authority.certificate).stderr)
        self.stop(up)

    def test_view_serves_over_tls_from_its_sandbox_and_sees_revocations(self):
        self.assertEqual(self.record(program.HOTPATHS, "--seconds", "1").returncode, 0)
        view = self.start("view", self.recording, "--no-open", "--listen", "127.0.0.1:0", "--tls-cert", self.certificate,
                          "--tls-key", self.key, "--tokens", self.tokens)
        self.url = re.search(r"https://\S+/", view.stdout.readline()).group()
        self.assertEqual(self.get("api/v1/overview")[0], 401)
        self.assertEqual(self.get("api/v1/overview", token=self.read_token)[0], 200)
        program.run("token", "revoke", "--tokens", self.tokens, "--name", "ada")
        self.assertEqual(self.get("api/v1/overview", token=self.read_token)[0], 401)
        self.assertEqual(self.get("api/v1/overview", token=program.new_token(self.tokens, "bob", "read"))[0], 200)


if __name__ == "__main__":
    unittest.main()
