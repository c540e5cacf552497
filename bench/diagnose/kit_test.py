# SPDX-License-Identifier: Apache-2.0
"""A kit from elsewhere, with a fake gpusonde whose answer the recording determines, and with the real one."""

import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import kit  # noqa: E402
import report  # noqa: E402
import score  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("GPUSONDE_BUILD", ROOT / "build/release")).resolve()
SECOND = 1_000_000_000
BEGIN, END = 1_700_000_020 * SECOND, 1_700_000_030 * SECOND
ECHO = """#!{python}
import json, sys
if sys.argv[-1] == "situations":
    for number, _ in enumerate(json.load(open(sys.argv[2]))):
        print(json.dumps({{"incident": str(number), "situation": {{"slowdown": 2}}}}))
elif sys.argv[1] == "diagnose":
    print(json.dumps({{"incidents": json.load(open(sys.argv[2]))}}))
else:
    print(json.dumps([dict(one, seen_ns=one["start_ns"] + 500_000_000, named_ns=one["start_ns"] + 900_000_000)
                      for one in json.load(open(sys.argv[2]))]))
"""


def slow(cause="cpu_contention", **more):
    return {"begin_ns": BEGIN, "end_ns": END, "ms_before": 10, "ms_during": 20, "causes": [cause] if cause else [],
            "first_slow_ns": BEGIN} | more


class Kit(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="gpusonde-kit-"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.build = self.folder / "build"
        program = self.build / "bin/gpusonde"
        program.parent.mkdir(parents=True)
        program.write_text(ECHO.format(python=sys.executable))
        program.chmod(0o755)

    def recording(self, name, cause):
        """A recording in which gpusonde finds an incident, or nothing."""
        incident = {"start_ns": BEGIN, "end_ns": END, "pid": 7, "cause": cause,
                    "causes": [{"cause": cause, "confidence": 0.9}], "evidence": []}
        (self.folder / f"{name}.sonde").write_text(json.dumps([incident] if cause else []))

    def labels(self, trials, sealed=None):
        text = json.dumps({"version": 1, "trials": trials})
        (self.folder / "labels.json").write_text(text)
        (self.folder / "labels.sha256").write_text(sealed or hashlib.sha256(text.encode()).hexdigest() + "  labels.json\n")

    def test_recordings_are_predicted_before_labels_exist_and_scored_after(self):
        self.recording("a", "cpu_contention")
        self.recording("b", "block_io")
        self.recording("quiet", None)
        self.assertIsNone(kit.run(self.folder, self.build), "frozen, and nothing to score yet")
        self.labels({"a": slow(pid=7, victim="theirs"), "b": slow(), "quiet": slow(None, ms_during=10)})
        result = kit.run(self.folder, self.build)
        self.assertEqual(list(result["asked"]), ["gpusonde"], "the simple rules need the instruments")
        judged = result["asked"]["gpusonde"]
        self.assertEqual(judged["effective"]["confusion"],
                         {"cpu_contention → block_io": 1, "cpu_contention → cpu_contention": 1})
        self.assertEqual((judged["negatives"], judged["false_alarms"]), (1, 0))
        self.assertEqual(result["delays"]["seen_s"], [0.5, 0.5])
        self.assertIn("gpusonde, effective: 1 of 2 right", report.text(result))
        self.assertEqual(len((self.folder / "openings.log").read_text().splitlines()), 1)

    def test_another_process_incident_is_no_answer(self):
        self.recording("a", "cpu_contention")
        self.labels({"a": slow(pid=8)})
        result = kit.run(self.folder, self.build)
        self.assertEqual(result["asked"]["gpusonde"]["effective"]["confusion"], {"cpu_contention → none": 1})

    def test_changed_labels_and_predictions_are_refused(self):
        self.recording("a", "cpu_contention")
        self.labels({"a": slow()}, sealed="0" * 64)
        with self.assertRaisesRegex(kit.KitError, "sealed"):
            kit.run(self.folder, self.build)
        self.labels({"a": slow()})
        kit.run(self.folder, self.build)
        path = self.folder / "predictions-kit.json"
        path.write_text(path.read_text().replace("cpu_contention", "block_io"))
        with self.assertRaises(score.NotFrozen):
            kit.run(self.folder, self.build)

    def test_recordings_without_labels_and_labels_without_recordings_are_named(self):
        self.recording("a", None)
        self.labels({"a": slow(), "b": slow()})
        with self.assertRaisesRegex(kit.KitError, "^b: there is either"):
            kit.run(self.folder, self.build)
        kit_of_none = self.folder / "empty"
        kit_of_none.mkdir()
        with self.assertRaisesRegex(kit.KitError, "no .*sonde"):
            kit.run(kit_of_none, self.build)

    def test_labels_that_make_no_sense_are_refused_in_words(self):
        self.recording("a", None)
        for label, why in ((slow("cpu"), "no cause is named 'cpu'"), (slow(ms_before=0), "more than 0"),
                           (slow(begin_ns=END + 1), "ends before"), (slow(begin_ns="now"), "`begin_ns`"),
                           (slow(sesame=1), "`sesame` is unknown"), (slow(causes=[["a"]]), "no cause is named"),
                           (slow(causes=["hang", "hang"]), "comes twice"),
                           (slow(causes=["hang", "block_io"]), "`cause_ms`"),
                           (slow(ms_during=10), "have no cause"), (slow(ms_during=float("nan")), "more than 0"),
                           ([], "not an object")):
            with self.subTest(why):
                self.labels({"a": label})
                with self.assertRaisesRegex(kit.KitError, f"labels.json: a: .*{why}"):
                    kit.run(self.folder, self.build)
        (self.folder / "labels.sha256").unlink()
        for text in ("{", "[]", '{"version": 2, "trials": {}}', "[" * 100_000):
            (self.folder / "labels.json").write_text(text)
            with self.assertRaises(kit.KitError):
                kit.run(self.folder, self.build)

    def test_labels_may_be_the_causes_of_the_diagnosis(self):
        self.assertEqual(set(kit.CAUSES), {path.stem for path in (ROOT / "src/diagnose/causes").glob("*.cpp")})

    def test_a_recording_without_a_gpu_has_no_incidents(self):
        maker = BUILD / "tests/sample_recording"
        if not maker.exists() or not (BUILD / "bin/gpusonde").exists():
            self.skipTest(f"{BUILD} holds no gpusonde with its test programs")
        subprocess.run([maker, self.folder / "a.sonde"], check=True)
        self.labels({"a": slow(None, ms_during=10)})
        judged = kit.run(self.folder, BUILD)["asked"]["gpusonde"]
        self.assertEqual((judged["negatives"], judged["false_alarms"]), (1, 0))


if __name__ == "__main__":
    unittest.main()
