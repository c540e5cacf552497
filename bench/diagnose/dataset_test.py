# SPDX-License-Identifier: Apache-2.0
"""Writes the data set with DuckDB and reads it back."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import dataset  # noqa: E402
import duck  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("GPUSONDE_BUILD", ROOT / "build/release")).resolve()
SECOND = 1_000_000_000


class DataSet(unittest.TestCase):
    def setUp(self):
        self.out = pathlib.Path(tempfile.mkdtemp(prefix="gpusonde-dataset-"))
        self.addCleanup(shutil.rmtree, self.out)
        if duck.library(BUILD) is None:
            self.skipTest("DuckDB's library is missing: run tools/setup build")

    def trial(self, name, slow_ms):
        """A recording without GPU work, and steps of 100 ms that wait for a CPU from 20 s to 29 s."""
        folder = self.out / "trials" / name
        folder.mkdir(parents=True)
        subprocess.run([BUILD / "tests/sample_recording", folder / "run.sonde"], check=True)
        lines, at = [], 5 * SECOND
        while at < 34 * SECOND:
            length = (slow_ms if 20 * SECOND <= at < 29 * SECOND else 100) * 1_000_000
            lines.append(f"{at} {at + length} 0 0 0")
            at += length
        (folder / "steps.log").write_text("\n".join(lines) + "\n")
        samples = []
        for second in range(5, 35):
            during = min(max(0, second - 20), 9) * SECOND
            samples.append({"time_ns": second * SECOND, "busy_ns": during, "stolen_ns": 0, "disk_bytes": 0, "disk_ns": 0,
                            "pressure_ns": {"cpu": during}, "cpu_ns": {"victim": 0, "injector": during}, "failcnt": 0,
                            "switches": 3, "retransmits": 0, "sent_bytes": 0, "threads": {"7": {"8": [5, during // 2]}}})
        (folder / "samples.jsonl").write_text("\n".join(map(json.dumps, samples)) + "\n")
        (folder / "trial.json").write_text(json.dumps({
            "plan": {"split": "train", "victim": "trainer", "fault": "compute", "amount": 2, "shape": "steady", "clean_s": 14,
                     "seed": 3, "intended": "cpu_contention", "also": []},
            "begin_ns": 20 * SECOND, "end_ns": 29 * SECOND, "epoch_offset_ns": SECOND, "own_cpu_ns": 0, "cpus": 2}))

    def test_labels_logs_and_tables_survive_a_round_trip(self):
        if not (BUILD / "tests/sample_recording").exists():
            self.skipTest(f"{BUILD} holds no gpusonde with its test programs")
        self.trial("train-1-000", slow_ms=200)
        self.trial("train-1-001", slow_ms=100)
        target = self.out / "set"
        card = dataset.export(self.out, BUILD, "train", target)
        with duck.Duck(duck.library(BUILD)) as database:
            def rows(sql):
                return database.run(sql.replace("SET", str(target)))

            self.assertEqual(rows("SELECT trial, state, len(causes), causes[1], cause_ms['cpu_contention'] > 80 "
                                  "FROM 'SET/trials.parquet' ORDER BY trial"),
                             [["train-1-000", "effective", "1", "cpu_contention", "true"],
                              ["train-1-001", "negative", "0", None, None]])
            self.assertEqual(rows("SELECT count(*), max(end_ns - begin_ns) FROM 'SET/step_log.parquet' "
                                  "WHERE trial = 'train-1-000'"),
                             [["245", "200000000"]])
            self.assertEqual(rows("SELECT max(cpu_ns['injector']), sum(switches) FROM 'SET/samples.parquet'"),
                             [[str(9 * SECOND), "180"]])
            self.assertEqual(rows("SELECT pid, tid, max(run_delay_ns) FROM 'SET/threads.parquet' GROUP BY ALL"),
                             [["7", "8", str(9 * SECOND // 2)]])
            ((processes, trials),) = rows("SELECT count(*), count(DISTINCT trial) FROM 'SET/processes.parquet'")
            self.assertGreater(int(processes), 0)
            self.assertEqual(trials, "2")
            self.assertEqual(rows("SELECT count(*) FROM 'SET/signals.parquet'"), [["0"]], "a table without rows is there too")
        self.assertIn("**2 trials, 2 of them usable.** Of these: 1 effective, 1 negative.", card)
        self.assertIn("| `step_log.parquet` | 535 |", card)
        self.assertEqual((target / "README.md").read_text(), card)
        self.assertIn("train export", (self.out / "openings.log").read_text())

    def test_nothing_to_write_and_errors_of_duckdb_are_reported(self):
        with self.assertRaisesRegex(RuntimeError, "no trial of the test split"):
            dataset.export(self.out, BUILD, "test", self.out / "set")
        with duck.Duck(duck.library(BUILD)) as database, self.assertRaisesRegex(RuntimeError, "no_such_table"):
            database.run("SELECT * FROM no_such_table")


if __name__ == "__main__":
    unittest.main()
