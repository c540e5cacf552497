# SPDX-License-Identifier: Apache-2.0
"""`gpusonde admission` as Kubernetes' API server asks it: AdmissionReviews over HTTPS."""

import base64
import copy
import json
import re
import signal
import subprocess
import urllib.error
import urllib.request

import program
import secure_test

LIBRARY = "/opt/gpusonde/lib/libgpusonde-inject.so"
CONTAINER = {"name": "worker", "image": "train:7", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "train-0", "namespace": "ml", "labels": {"gpusonde/profile": "cuda"}},
       "spec": {"containers": [CONTAINER], "restartPolicy": "Never"}}
MAX_MEMORY_KIB = 200_000  # its container's limit is 256 MiB


def review(pod):
    kind, resource = {"group": "", "version": "v1", "kind": "Pod"}, {"group": "", "version": "v1", "resource": "pods"}
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "705ab4f5-6393-11e8-b7cc-42010a800002", "kind": kind, "resource": resource, "requestKind": kind,
        "requestResource": resource, "name": "train-0", "namespace": "ml", "operation": "CREATE",
        "userInfo": {"username": "ada", "groups": ["system:authenticated"]}, "object": pod, "oldObject": None, "dryRun": False}}


def patched(pod, patch):
    """The pod after a JSON Patch that only adds (RFC 6902, section 4.1)."""
    pod = copy.deepcopy(pod)
    for operation in patch:
        assert operation["op"] == "add", operation
        *parents, last = operation["path"].split("/")[1:]
        target = pod
        for part in parents:
            target = target[int(part) if isinstance(target, list) else part]
        if last == "-":
            target.append(operation["value"])
        else:
            assert isinstance(target, dict), operation
            target[last] = operation["value"]
    return pod


class Admission(secure_test.SecureTestCase):
    def setUp(self):
        super().setUp()
        self.certificate, self.key = self.authority.sign("admission")
        self.admission = self.start("admission", "--listen", "127.0.0.1:0", "--tls-cert", self.certificate, "--tls-key", self.key)
        said = self.admission.stdout.readline()
        self.url = (re.search(r"https://\S+:\d+/", said) or self.fail(said + self.errors())).group()

    def post(self, body, context=None):
        """(status, JSON) of the answer to a review."""
        request = urllib.request.Request(self.url + "api/v1/admission?timeout=2s", data=body.encode(), method="POST",
                                         headers={"Content-Type": "application/json", "Accept": "application/json, */*"})
        try:
            with urllib.request.urlopen(request, timeout=30, context=context or self.context()) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    def answer(self, pod):
        status, answer = self.post(json.dumps(review(pod)))
        self.assertEqual(status, 200, answer)
        self.assertEqual((answer["apiVersion"], answer["kind"]), ("admission.k8s.io/v1", "AdmissionReview"))
        self.assertEqual((answer["response"]["uid"], answer["response"]["allowed"]), (review(pod)["request"]["uid"], True))
        return answer["response"]

    def test_a_pod_that_asks_is_patched_once_and_others_are_not(self):
        response = self.answer(POD)
        self.assertEqual(response["patchType"], "JSONPatch")
        pod = patched(POD, json.loads(base64.b64decode(response["patch"])))
        expected = copy.deepcopy(POD)
        expected["spec"]["containers"][0] |= {
            "env": [{"name": name, "value": LIBRARY} for name in ("CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH")],
            "volumeMounts": [{"name": "gpusonde-inject", "mountPath": "/opt/gpusonde/lib", "readOnly": True}]}
        expected["spec"]["volumes"] = [{"name": "gpusonde-inject",
                                        "hostPath": {"path": "/opt/gpusonde/lib", "type": "DirectoryOrCreate"}}]
        self.assertEqual(pod, expected)
        self.assertNotIn("patch", self.answer(pod))
        other = copy.deepcopy(POD)
        del other["metadata"]["labels"]
        self.assertEqual(set(self.answer(other)), {"uid", "allowed"})
        self.admission.send_signal(signal.SIGTERM)
        self.admission.wait(timeout=30)
        self.assertEqual((self.admission.returncode, self.errors()), (0, ""))

    def test_a_new_certificate_is_used_without_a_restart_and_another_authority_is_not_trusted(self):
        stranger = secure_test.Authority(self.folder, "stranger")
        with self.assertRaises(urllib.error.URLError):
            self.post("{}", self.context(stranger))
        self.authority = stranger
        stranger.sign("admission")
        self.assertIn("patch", self.answer(POD))

    def test_hostile_reviews_are_refused_in_bounded_memory(self):
        hostile = ["", "{", "[" * (1 << 20), "[" * (1 << 19) + "]" * (1 << 19), "[" + "{}," * 349_000 + "{}]", "1" * (1 << 20)]
        for body in hostile:
            status, answer = self.post(body)
            self.assertEqual((status, answer["error"]["code"]), (400, "invalid_argument"), body[:9])
        self.assertEqual(self.post(" " * ((1 << 20) + 1))[0], 413)
        many = copy.deepcopy(POD)
        many["spec"]["containers"] = [CONTAINER] * 1001
        self.assertIn("at most 1000", self.post(json.dumps(review(many)))[1]["error"]["message"])
        self.assertIn("patch", self.answer(POD))
        with open(f"/proc/{self.admission.pid}/status", encoding="ascii") as status:
            used = int(re.search(r"^VmHWM:\s+(\d+) kB", status.read(), re.MULTILINE)[1])
        self.assertLess(used, MAX_MEMORY_KIB)

    def test_probes_need_tls_and_nothing_else(self):
        for path in ("healthz", "readyz"):
            self.assertEqual(self.get(path)[0], 200)
        done = subprocess.run(["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", self.url.replace("https", "http") + "healthz"],
                              capture_output=True, text=True, check=False)
        self.assertNotEqual(done.stdout, "200")

    def test_clients_need_a_certificate_where_it_is_asked_for(self):
        admission = self.start("admission", "--listen", "127.0.0.1:0", "--tls-cert", self.certificate, "--tls-key", self.key,
                               "--tls-client-ca", self.authority.certificate)
        self.url = re.search(r"https://\S+:\d+/", admission.stdout.readline()).group()
        with self.assertRaises(OSError):
            self.post("{}")
        context = self.context()
        context.load_cert_chain(*self.authority.sign("api-server"))
        self.assertEqual(self.post(json.dumps(review(POD)), context)[0], 200)


if __name__ == "__main__":
    program.unittest.main()
