# SPDX-License-Identifier: Apache-2.0
"""Trials of several faults: their plans, their labels and their scores."""

import json
import pathlib
import shutil
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import chain_score  # noqa: E402
import chains  # noqa: E402
import faults  # noqa: E402
import kept  # noqa: E402
import manifest  # noqa: E402
import predict  # noqa: E402
import score  # noqa: E402

SECOND = 1_000_000_000
OFFSET = 1_000 * SECOND


def link(begin, end, state="effective", causes=("cpu_contention",), kind="apart"):
    return {"begin_ns": begin * SECOND, "end_ns": end * SECOND, "kind": kind, "fault": "compute", "state": state,
            "causes": list(causes), "slowdown": 2.0}


def incident(begin, end, *causes):
    """An incident that names these causes, the first of them first."""
    return {"start_ns": int(begin * SECOND) + OFFSET, "end_ns": None if end is None else int(end * SECOND) + OFFSET,
            "cause": causes[0] if causes else "abstain", "causes": [{"cause": cause, "confidence": 0.9} for cause in causes]}


def judged(links, incidents):
    return chain_score.judge(score.Trial("chains-train-1-000", {"plan": {"victim": "trainer"}, "epoch_offset_ns": OFFSET},
                                         {"void": None, "links": links}, {"replayed": {"incidents": incidents}}))


def outcomes(links, *incidents):
    return [one["outcome"] for one in judged(links, incidents)["links"]]


class Plans(unittest.TestCase):
    def test_chains_are_their_seeds(self):
        self.assertEqual(chains.make("train", 3, 20), chains.make("train", 3, 20))
        self.assertNotEqual(chains.make("train", 3, 20), chains.make("train", 4, 20))
        self.assertEqual(chains.make("test", 3, 20)[:5], chains.make("test", 3, 5))

    def test_links_follow_each_other_as_their_kind_says(self):
        gaps = {"apart": chains.APART_S, "close": chains.CLOSE_S, "again": chains.AGAIN_S}
        seen = set()
        for split in ("train", "test"):
            for chain in chains.make(split, 1, 100):
                self.assertIn(len(chain.links), chains.LENGTHS)
                self.assertIn(chain.links[0].kind, ("first", "early"))
                for before, after in zip(chain.links, chain.links[1:]):
                    seen.add(after.kind)
                    same = (after.fault, after.amount) == (before.fault, before.amount)
                    self.assertEqual(after.kind == "again", same)
                    self.assertEqual(after.intended == before.intended, same)
                    if after.kind == "overlap":
                        self.assertTrue(before.begin_s < after.begin_s < before.end_s < after.end_s)
                    else:
                        low, high = gaps[after.kind]
                        self.assertTrue(low - 0.02 <= after.begin_s - before.end_s <= high + 0.02)
                for first, third in zip(chain.links, chain.links[2:]):
                    self.assertLess(first.end_s, third.begin_s, "at most two at a time")
        self.assertEqual(seen, set(chains.KINDS))

    def test_victims_and_faults_are_those_of_the_split(self):
        for split, table in (("train", manifest.TRAIN), ("test", manifest.TEST)):
            for chain in chains.make(split, 2, 50):
                self.assertEqual(chain.split, split)
                for one in chain.links:
                    victims, amounts, intended = table[one.fault]
                    self.assertIn(chain.victim, victims)
                    self.assertIn(one.amount, amounts)
                    self.assertEqual(one.intended, intended)
                    self.assertIn(one.fault, faults.FAULTS)


class Labels(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="gpusonde-chains-")) / "trials/chains-train-1-000"
        self.folder.mkdir(parents=True)
        self.addCleanup(shutil.rmtree, self.folder.parents[1])

    def write(self, links, calm_ms=lambda _at_s: 100):
        """Steps from 5 s on, of 200 ms while a link is active. Links: [(intended, begin, end, share of the time that threads wait for
        a CPU, bytes a second of a busy disk for which they wait), …]."""
        def active(at_ns):
            return [one for one in links if one[1] * SECOND <= at_ns < one[2] * SECOND]

        lines, at_ns, end_ns = [], 5 * SECOND, (links[-1][2] + 8) * SECOND
        while at_ns < end_ns:
            length_ns = (200 if active(at_ns) else calm_ms(at_ns / SECOND)) * 1_000_000
            disk_ns = 100_000_000 if any(one[4] for one in active(at_ns)) else 0
            lines.append(f"{at_ns} {at_ns + length_ns} 0 {disk_ns} 0")
            at_ns += length_ns
        (self.folder / "steps.log").write_text("\n".join(lines) + "\n")
        samples = []
        for time_ns in range(5 * SECOND, end_ns, SECOND // 4):
            lasted = [min(max(0, time_ns - one[1] * SECOND), (one[2] - one[1]) * SECOND) for one in links]
            delay_ns = sum(int(one[3] * ns) for one, ns in zip(links, lasted))
            samples.append({
                "time_ns": time_ns, "busy_ns": time_ns // 2 + 2 * delay_ns, "stolen_ns": 0, "disk_ns": 0, "sent_bytes": 0,
                "disk_bytes": sum(one[4] * ns // SECOND for one, ns in zip(links, lasted)), "failcnt": 0, "net_rx": 0,
                "cpu_ns": {"victim": time_ns // 2, "injector": 2 * delay_ns}, "retransmits": 0, "interrupts_ns": 0,
                "threads": {"7": {"7": [time_ns // 2, delay_ns]}}})
        (self.folder / "samples.jsonl").write_text("\n".join(map(json.dumps, samples)) + "\n")
        record = {"plan": {"victim": "trainer", "links": [{"intended": one[0], "kind": "apart", "fault": "f"} for one in links]},
                  "links": [{"begin_ns": one[1] * SECOND, "active_ns": one[1] * SECOND, "inactive_ns": one[2] * SECOND,
                             "end_ns": one[2] * SECOND} for one in links],
                  "begin_ns": links[0][1] * SECOND, "end_ns": max(one[2] for one in links) * SECOND, "own_cpu_ns": 0, "cpus": 2,
                  "epoch_offset_ns": OFFSET}
        (self.folder / "trial.json").write_text(json.dumps(record))

    def labels(self):
        made = chains.label_of(self.folder)
        self.assertIsNone(made["void"])
        return [(one["state"], one["causes"]) for one in made["links"]]

    def test_each_link_is_labelled_by_its_own_mechanism(self):
        self.write([("cpu_contention", 20, 26, 0.5, 0), ("block_io", 29, 35, 0, 50_000_000)])
        self.assertEqual(self.labels(), [("effective", ["cpu_contention"]), ("effective", ["block_io"])])

    def test_what_overlaps_is_labelled_by_the_time_alone(self):
        self.write([("cpu_contention", 20, 26, 0.5, 0), ("block_io", 23, 29, 0, 50_000_000)])
        self.assertEqual(self.labels(), [("effective", ["cpu_contention"]), ("effective", ["block_io"])])

    def test_a_link_is_unclear_without_its_mechanism_or_without_time_alone(self):
        self.write([("cpu_contention", 20, 26, 0, 0)])
        self.assertEqual(self.labels(), [("unclear", [])])
        self.write([("cpu_contention", 20, 26, 0.5, 0), ("block_io", 21, 25, 0, 50_000_000)])
        self.assertEqual(self.labels()[1], ("unclear", []))

    def test_a_trial_whose_calm_steps_change_is_void(self):
        self.write([("cpu_contention", 20, 26, 0.5, 0)], calm_ms=lambda at_s: 100 if at_s < 20 else 150)
        self.assertEqual(chains.label_of(self.folder)["void"], "no recovery")

    def test_predictions_are_scored_and_kept_apart_from_other_trials(self):
        out = self.folder.parents[1]
        self.write([("cpu_contention", 20, 26, 0.5, 0), ("block_io", 29, 35, 0, 50_000_000)])
        predict.write(out, "chains-train", {"chains-train-1-000": {
            "replayed": {"incidents": [incident(20, 26, "cpu_contention"), incident(29, 35, "cpu_contention")]}, "live": [],
            "baselines": {}}})
        self.assertEqual(kept.keep(out, "chains-train", "5a1f", out / "kept", chains.label_of), 1)
        result = kept.total("chains-train", out / "kept", chain_score.compare)
        self.assertEqual((result["faults"], result["right"], result["outcomes"]["wrong"]), (2, 1, 1))
        text = chain_score.text(result)
        self.assertIn("2 faults: 1 right, 1 wrong", text)
        self.assertIn("build (hash of the program): 5a1f", text)


class Scores(unittest.TestCase):
    TWO = (link(20, 26), link(29, 35, causes=("block_io",)))

    def test_each_fault_needs_an_incident_of_its_own_with_its_cause(self):
        self.assertEqual(outcomes(self.TWO, incident(20, 26, "cpu_contention"), incident(29, 35, "block_io")), ["right", "right"])
        self.assertEqual(outcomes(self.TWO, incident(20, 26, "block_io"), incident(29, 35)), ["wrong", "wrong"])
        self.assertEqual(outcomes(self.TWO), ["undetected", "undetected"])

    def test_a_fault_in_anothers_incident_is_joined_if_that_names_it(self):
        self.assertEqual(outcomes(self.TWO, incident(20, 35, "cpu_contention", "block_io")), ["right", "joined"])
        self.assertEqual(outcomes(self.TWO, incident(20, 35, "block_io", "cpu_contention")), ["joined", "joined"])
        self.assertEqual(outcomes(self.TWO, incident(20, None, "cpu_contention")), ["right", "swallowed"])
        self.assertEqual(outcomes(self.TWO, incident(20, 29.5, "cpu_contention")), ["right", "undetected"])

    def test_further_incidents_of_a_fault_are_extra_and_others_are_false(self):
        links = [*self.TWO, link(45, 50, "negative", ())]
        one = judged(links, [incident(20, 22, "cpu_contention"), incident(23, 26, "cpu_contention"), incident(29, 35, "block_io"),
                             incident(40, 42), incident(46, 49, "slow_cpu")])
        self.assertEqual((one["extra"], one["false"]), (1, ["abstain", "slow_cpu"]))
        self.assertEqual([each["outcome"] for each in one["links"]], ["right", "right"])

    def test_causes_of_no_fault_at_that_time_are_stray(self):
        one = judged(self.TWO, [incident(20, 26, "cpu_contention", "block_io"), incident(29, 35, "block_io")])
        self.assertEqual(one["stray"], ["block_io"])
        self.assertEqual(judged(self.TWO, [incident(20, 35, "cpu_contention", "block_io")])["stray"], [])

    def test_unclear_faults_are_neither_judged_nor_false(self):
        one = judged([link(20, 26, "unclear", ())], [incident(20, 26, "cpu_contention")])
        self.assertEqual((one["links"], one["false"]), ([], []))


if __name__ == "__main__":
    unittest.main()
