# SPDX-License-Identifier: Apache-2.0
"""Labels and scores of synthetic trials."""

import bisect
import collections
import itertools
import json
import pathlib
import shutil
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import faults  # noqa: E402
import kept  # noqa: E402
import label  # noqa: E402
import manifest  # noqa: E402
import predict  # noqa: E402
import report  # noqa: E402
import score  # noqa: E402

SECOND = 1_000_000_000
BEGIN, END, OFFSET = 20 * SECOND, 29 * SECOND, 1_000 * SECOND


class MadeUp(unittest.TestCase):
    def setUp(self):
        self.out = pathlib.Path(tempfile.mkdtemp(prefix="gpusonde-score-"))
        self.addCleanup(shutil.rmtree, self.out)
        self.predictions = {}

    def trial(self, name="train-1-000", slow_ms=200, intended="cpu_contention", delay=0.0, disk_ms=0, foreign=0.0,
              injector=1.0, incidents=(), data_ms=0, disk_busy=0.0, again=0.0, sent=0.0, rank_ms=None, also=(),
              rank_delay=0.0, rank_cpu=0.0, seen_s=1.0, packets=0, active=((BEGIN, END),), after_ms=100, step_mb=0,
              cpus=2, stopped=False):
        """Steps of 100 ms from 5 s on, and of `slow_ms` during the fault. During the fault, its threads wait for a CPU `delay`
        of that time, its disk calls take `disk_ms` of a step, and the sum over all ranks takes `data_ms`. The disk is busy for 0.5 of
        the time, and `disk_busy` more during the fault; the ranks retransmit `again` segments and send `sent` MB more per second,
        and send `step_mb` in each step themselves. Another rank's own part of a step takes 50 ms, and `rank_ms` during the fault,
        in which it waits for a CPU `rank_delay` of the time or runs `rank_cpu` more of it. Incidents are detected, and named,
        `seen_s` after they began. `packets` per second are handled in softirqs, which take a third of the machine. The fault is
        active in the windows `active`, in which its threads may use `cpus` instead of 2, and may be `stopped`; steps after it take
        `after_ms`."""
        folder = self.out / "trials" / name
        folder.mkdir(parents=True)
        lines, ends, at = [], [], 5 * SECOND
        while at < 34 * SECOND:
            during = any(begin <= at < end for begin, end in active)
            length = (slow_ms if during else after_ms if at >= END else 100) * 1_000_000
            lines.append(f"{at} {at + length} {data_ms * 1_000_000 if during else 0} "
                         f"{disk_ms * 1_000_000 if during else 0} 0")
            at += length
            ends.append(at)
        if rank_ms is not None:
            log = [f"{at} {at + 100_000_000} {(50 if at < BEGIN or at >= END else 100 - rank_ms) * 1_000_000} 0 0"
                   for at in range(5 * SECOND, 34 * SECOND, 100_000_000)]
            (folder / "steps.log.1").write_text("\n".join(log) + "\n")
        (folder / "steps.log").write_text("\n".join(lines) + "\n")
        samples = []
        for quarter in range(5 * 4, 34 * 4):
            time_ns = quarter * SECOND // 4
            faulty_ns = sum(min(max(0, time_ns - begin), end - begin) for begin, end in active)
            busy_ns = time_ns // 2 + int(injector * faulty_ns) + int(2 * foreign * time_ns)
            busy_ns += int(0.7 * faulty_ns) if packets else 0
            samples.append({
                "time_ns": time_ns, "busy_ns": busy_ns, "stolen_ns": 0, "disk_bytes": faulty_ns // 10 if disk_ms else 0,
                "disk_ns": time_ns // 2 + int(disk_busy * faulty_ns), "sent_bytes": int(sent * 1e6 * faulty_ns / SECOND) + step_mb * 10**6 * bisect.bisect(ends, time_ns),
                "pressure_ns": {"cpu": 0, "io": 0, "memory": 0},
                "cpu_ns": {"victim": time_ns // 2, "agent": 0, "injector": int(injector * faulty_ns)}, "failcnt": 0,
                "switches": 0, "net_rx": packets * faulty_ns // SECOND,
                "allowed_cpus": cpus if any(begin <= time_ns < end for begin, end in active) else 2,
                "stopped": stopped and any(begin <= time_ns < end for begin, end in active),
                "interrupts_ns": int(0.7 * faulty_ns) if packets else 0,
                "retransmits": int(again * faulty_ns / SECOND), "threads": {
                    "7": {"7": [time_ns // 2, int(delay * faulty_ns)]},
                    "8": {"8": [time_ns // 16 + int(rank_cpu * faulty_ns), int(rank_delay * faulty_ns)]}}})
        (folder / "samples.jsonl").write_text("\n".join(map(json.dumps, samples)) + "\n")
        plan = {"victim": "trainer", "fault": "compute", "amount": 2, "shape": "steady", "clean_s": 14, "intended": intended,
                "also": list(also)}
        (folder / "trial.json").write_text(json.dumps({
            "plan": plan, "begin_ns": BEGIN, "end_ns": END, "active_ns": active, "epoch_offset_ns": OFFSET,
            "own_cpu_ns": 0, "cpus": 2,
            "rank_pids": [7, 8] if rank_ms is not None else []}))
        seen_ns = int(seen_s * SECOND)
        live = [{"start_ns": one["start_ns"], "seen_ns": one["start_ns"] + seen_ns, "named_ns": one["start_ns"] + seen_ns,
                 "cause": one["cause"]} for one in incidents]
        self.predictions[name] = {"replayed": {"incidents": list(incidents)}, "live": live,
                                  "baselines": {"rule": [], "zscore": [], "excess": []}}
        return folder

    @staticmethod
    def incident(cause, start_ns=BEGIN, confidence=0.9, also=(), root=None):
        """`also`: [(cause, confidence), …] that were considered, too."""
        return {"start_ns": start_ns + OFFSET, "end_ns": END + OFFSET, "cause": cause,
                "causes": [{"cause": name, "confidence": sure} for name, sure in ((cause, confidence), *also)],
                "evidence": [{"signal": f"root.{root}"}] if root else []}

    def scored(self, with_foreign_load=False):
        predict.write(self.out, "train", self.predictions)
        return score.score(self.out, "train", with_foreign_load)

    def test_a_label_needs_the_mechanism_and_not_just_the_injector(self):
        self.assertEqual(label.label(self.trial("train-1-000", delay=0.5))["causes"], ["cpu_contention"])
        unconfirmed = label.label(self.trial("train-1-001", delay=0.0))
        self.assertEqual((unconfirmed["causes"], unconfirmed["void"]), ([], "not confirmed"))
        without = label.label(self.trial("train-1-002", delay=0.0, intended=""))
        self.assertEqual((without["causes"], without["void"]), ([], None))

    def test_own_threads_that_take_cpus_of_a_full_machine_are_own_contention(self):
        labelled = label.label(self.trial(intended="cpu_contention_own", delay=0.5, injector=0.0))
        self.assertEqual(labelled["causes"], ["cpu_contention_own"])

    def test_fewer_cpus_need_a_smaller_mask(self):
        smaller = self.trial("train-1-000", intended="fewer_cpus", delay=0.5, injector=0.0, cpus=1)
        same = self.trial("train-1-001", intended="fewer_cpus", delay=0.5, injector=0.0)
        self.assertEqual([label.label(folder)["causes"] for folder in (smaller, same)], [["fewer_cpus"], []])

    def test_who_is_stopped_must_be_seen_stopped(self):
        seen = self.trial("train-1-000", intended="stopped", stopped=True)
        unseen = self.trial("train-1-001", intended="stopped")
        self.assertEqual([label.label(folder)["causes"] for folder in (seen, unseen)], [["stopped"], []])

    def test_others_that_send_are_seen_though_the_ranks_send_less(self):
        busy = self.trial("train-1-000", intended="network_contention", data_ms=90, step_mb=4, sent=15)
        alone = self.trial("train-1-001", intended="network_contention", data_ms=90, step_mb=4)
        self.assertEqual([label.label(folder)["causes"] for folder in (busy, alone)], [["network_contention"], []])

    def test_a_late_fault_makes_no_negative(self):
        late = label.label(self.trial("train-1-000", slow_ms=100, after_ms=200))
        never = label.label(self.trial("train-1-001", slow_ms=100))
        self.assertEqual([(one["state"], one["void"]) for one in (late, never)],
                         [("negative", "slow afterwards"), ("negative", None)])

    def test_slow_steps_while_a_fault_builds_up_make_no_negative(self):
        folder = self.trial("train-1-000", slow_ms=150, active=((BEGIN, BEGIN + 3 * SECOND),))
        record = json.loads((folder / "trial.json").read_text())
        record["active_ns"] = [[END - 3 * SECOND, END]]
        (folder / "trial.json").write_text(json.dumps(record))
        labelled = label.label(folder)
        self.assertEqual((labelled["state"], labelled["void"]), ("negative", "slow for a while"))

    def test_kept_situations_lack_command_lines_and_small_shares(self):
        situation = {"slowdown": 2, "signals": {"m": {"before": 1, "during": None}}, "ranks": [{"name": "r", "cpu_before": []}],
                     "cpu_during": [{"name": "a", "command": "a --token x", "amount": 99.5}, {"name": "b", "command": "", "amount": 0.5}]}
        self.assertEqual(kept.slim(situation), situation | {"cpu_during": [{"name": "a", "command": "", "amount": 99.5}]})

    def test_kept_trials_add_up_and_first_predictions_stay(self):
        folder = self.out / "kept"
        self.trial("train-1-000", delay=0.5, incidents=[self.incident("cpu_contention")])
        failed = self.out / "trials/train-1-001"
        failed.mkdir()
        (failed / "failed.txt").write_text("the victim made no step\n")
        predict.write(self.out, "train", self.predictions)
        self.assertEqual(kept.keep(self.out, "train", "5a1f", folder), 2)
        self.trial("train-2-000", delay=0.5)
        self.predictions["train-1-000"]["replayed"]["incidents"] = []
        predict.write(self.out, "train", self.predictions)
        self.assertEqual(kept.keep(self.out, "train", "5a1f", folder), 1)
        result = kept.total("train", folder)
        self.assertEqual((result["trials"], result["failed"], result["program"]), (2, 1, "5a1f"))
        self.assertEqual(result["asked"]["gpusonde"]["effective"]["confusion"],
                         {"cpu_contention → cpu_contention": 1, "cpu_contention → none": 1})
        self.assertIn("build (hash of the program): 5a1f", report.text(result))

    def test_predictions_of_earlier_builds_are_reported_beside_the_newest(self):
        folder = self.out / "kept"
        self.trial("train-1-000", delay=0.5)
        predict.write(self.out, "train", self.predictions)
        kept.keep(self.out, "train", "5a1f", folder)
        self.trial("train-2-000", delay=0.5, incidents=[self.incident("cpu_contention")])
        predict.write(self.out, "train", self.predictions)
        kept.keep(self.out, "train", "77aa", folder)
        result = kept.total("train", folder)
        self.assertEqual((result["program"], result["trials"], result["asked"]["gpusonde"]["effective"]["right"]), ("77aa", 1, 1))
        self.assertIn("earlier build 5a1f: 0 of 1 right", report.text(result))

    def test_an_injection_that_slows_nothing_is_a_negative(self):
        self.assertEqual(label.label(self.trial(slow_ms=100, delay=0.5))["state"], "negative")

    def test_pauses_between_pulses_hide_no_slow_steps(self):
        pulses = [(BEGIN + second * SECOND, BEGIN + (second + 1) * SECOND) for second in (0, 3, 6)]
        made = label.label(self.trial(delay=0.5, active=pulses))
        self.assertEqual((made["state"], made["slowdown"], made["causes"]), ("effective", 2.0, ["cpu_contention"]))
        self.assertAlmostEqual(made["explained_ms"]["run_delay"], 100, delta=1)

    def test_a_slow_down_that_outlives_its_fault_is_not_the_faults(self):
        self.assertEqual(label.label(self.trial("train-1-000", delay=0.5, after_ms=190))["void"], "no recovery")
        self.assertIsNone(label.label(self.trial("train-1-001", delay=0.5, after_ms=110))["void"])

    def test_the_victims_stopwatch_and_the_disks_make_block_io(self):
        made = label.label(self.trial(intended="block_io", disk_ms=90))
        self.assertEqual((made["state"], made["causes"]), ("effective", ["block_io"]))

    def test_a_disk_that_has_less_to_do_while_its_victim_waits_is_throttled(self):
        limited = label.label(self.trial("train-1-000", intended="io_throttling", disk_ms=90, disk_busy=-0.3))
        self.assertEqual(limited["causes"], ["io_throttling"])
        busy = label.label(self.trial("train-1-001", intended="io_throttling", disk_ms=90, disk_busy=0.3))
        self.assertEqual(busy["causes"], ["block_io"])

    def test_the_ranks_sum_and_their_namespaces_make_a_network_fault(self):
        self.assertEqual(label.label(self.trial("train-1-000", intended="network_contention", data_ms=90, sent=10))["causes"],
                         ["network_contention"])
        self.assertEqual(label.label(self.trial("train-1-001", intended="network_contention", data_ms=90))["causes"], [])
        self.assertEqual(label.label(self.trial("train-1-002", intended="packet_loss", data_ms=90, again=9))["causes"],
                         ["packet_loss"])
        self.assertEqual(label.label(self.trial("train-1-003", intended="packet_loss", again=9))["causes"], [])

    def test_softirqs_that_keep_a_step_from_running_are_interrupt_pressure_and_not_foreign(self):
        made = label.label(self.trial("train-1-000", intended="interrupt_pressure", delay=0.5, injector=0.1, packets=20_000))
        self.assertEqual((made["causes"], made["void"]), (["interrupt_pressure"], None))
        few = label.label(self.trial("train-1-001", intended="interrupt_pressure", delay=0.5, injector=0.1, packets=200))
        self.assertNotIn("interrupt_pressure", few["causes"])
        other = label.label(self.trial("train-1-002", intended="block_io", delay=0.5, injector=0.1, packets=20_000))
        self.assertIn("foreign CPU", other["void"])

    def test_a_straggler_is_one_by_its_own_log(self):
        late = label.label(self.trial("train-1-000", intended="straggler", data_ms=90, rank_ms=95))
        self.assertEqual(late["causes"], ["straggler"])
        self.assertEqual(label.label(self.trial("train-1-001", intended="straggler", data_ms=90, rank_ms=50))["causes"], [])

    def test_two_causes_are_both_labels_and_both_have_to_be_named(self):
        plan_also = ("disk-read", 4, "block_io")
        both = self.incident("cpu_contention", also=[("block_io", 0.6)])
        self.trial("train-1-000", delay=0.5, disk_ms=60, also=plan_also, incidents=[both])
        self.trial("train-1-001", delay=0.5, disk_ms=60, also=plan_also, incidents=[self.incident("cpu_contention")])
        third = self.incident("cpu_contention", also=[("block_io", 0.6), ("packet_loss", 0.5)])
        self.trial("train-1-002", delay=0.5, disk_ms=60, also=plan_also, incidents=[third])
        self.assertEqual(self.scored()["twos"], {"of": 3, "both_named": 2, "in_order": 2, "no_third": 2, "all": 1})

    def test_of_two_causes_the_one_with_more_ms_has_to_come_first(self):
        plan_also = ("disk-read", 4, "block_io")
        cause_ms = label.label(self.trial("train-1-000", delay=0.5, disk_ms=60, also=plan_also, incidents=[
            self.incident("block_io", also=[("cpu_contention", 0.8)])]))["cause_ms"]
        self.assertEqual(cause_ms["block_io"], 60)
        self.assertAlmostEqual(cause_ms["cpu_contention"], 100, delta=5)
        # Neither is clearly larger, so either order is right.
        self.trial("train-1-001", delay=0.5, disk_ms=90, also=plan_also, incidents=[
            self.incident("block_io", also=[("cpu_contention", 0.8)])])
        twos = self.scored()["twos"]
        self.assertEqual((twos["of"], twos["both_named"], twos["in_order"]), (2, 2, 1))

    def test_behind_a_straggler_the_root_is_scored_by_itself(self):
        verdict = self.incident("straggler", root="cpu_contention")
        for number, (waits, runs, incident) in enumerate(((0.6, 0.0, verdict), (0.6, 0.0, self.incident("straggler")),
                                                           (0.0, 0.6, verdict), (0.0, 0.0, verdict))):
            self.trial(f"train-1-00{number}", intended="straggler", data_ms=90, rank_ms=95, rank_delay=waits, rank_cpu=runs,
                       incidents=[incident])
        result = self.scored()
        self.assertEqual(result["roots"], {"of": 4, "proximate_named": 4, "roots_known": 3, "root_right": 1, "confusion": {
            "cpu_contention → cpu_contention": 1, "cpu_contention → none": 1, "slow_cpu → cpu_contention": 1}})
        self.assertEqual([one["labels"] for one in result["details"]], [["straggler"]] * 4,
                         "what delays the other rank is no cause of this one's steps")

    def test_host_collective_and_simulated_causes_are_scored_apart(self):
        self.trial("train-1-000", delay=0.5, incidents=[self.incident("cpu_contention")])
        self.trial("train-1-001", delay=0.5, incidents=[self.incident("block_io")])
        self.trial("train-1-002", intended="straggler", data_ms=90, rank_ms=95, incidents=[self.incident("straggler")])
        self.trial("train-1-003", intended="", incidents=[self.incident("abstain")])
        kinds = self.scored()["asked"]["gpusonde"]["kinds"]
        self.assertEqual({kind: (one["right"], one["trials"]) for kind, one in kinds.items()},
                         {"host": (1, 2), "collective": (1, 1), "no model": (1, 1)})
        for causes, ranks, kind in ((["gpu_clocks"], [], "simulated"), (["gpu_clocks", "block_io"], [], "mixed"),
                                    (["slow_cpu"], [], "slow_cpu"), (["hang"], [], "host"), (["hang"], [7, 8], "collective")):
            self.assertEqual(score.Trial("", {"rank_pids": ranks}, {"causes": causes}, {}).kind(), kind)

    def test_a_rule_that_is_as_good_makes_the_benchmark_too_easy(self):
        self.trial("train-1-000", delay=0.5, incidents=[self.incident("cpu_contention")])
        self.trial("train-1-001", delay=0.5, incidents=[self.incident("cpu_contention")])
        self.assertEqual(self.scored()["too_easy_for"], [])
        for prediction in self.predictions.values():
            prediction["baselines"]["zscore"] = ["cpu_contention"]
        self.assertEqual(self.scored()["too_easy_for"], ["zscore"])

    def test_missing_trials_for_a_claim_are_reported(self):
        self.trial("train-1-000", delay=0.5, incidents=[self.incident("cpu_contention")])
        result = self.scored()
        self.assertEqual(result["short_of"], ["cpu_contention: 1 trials of 40, 1 victims of 3", "0 negatives of 236",
                                              "0 trials of two causes of 76"])
        self.assertIn("too few for a claim: cpu_contention: 1 trials", report.text(result))
        self.assertEqual(score.short_of({"hang": {"trials": 40, "victims": 3}}, 236, 76), [])

    def test_faint_slow_downs_are_reported_separately(self):
        self.trial("train-1-000", slow_ms=110, delay=0.5, incidents=[self.incident("cpu_contention")])
        judged = self.scored()["asked"]["gpusonde"]
        self.assertEqual((judged["effective"]["trials"], judged["faint"]["trials"], judged["faint"]["right"]), (0, 1, 1))

    def test_without_a_causes_verdict_abstain_is_right_and_the_next_cause_is_wrong(self):
        self.trial("train-1-000", delay=0.5, incidents=[self.incident("cpu_contention", also=[("block_io", 0.6)])])
        self.trial("train-1-001", delay=0.5, incidents=[self.incident("cpu_contention", also=[("block_io", 0.4)])])
        self.trial("train-1-002", delay=0.5, incidents=[self.incident("cpu_contention")])
        self.trial("train-1-003", delay=0.5)
        self.assertEqual(self.scored()["left_out"], {
            "cpu_contention": {"trials": 4, "abstains": 2, "unseen": 1, "wrong": {"block_io": 1}}})

    def test_confidence_is_held_against_what_was_right_on_negatives_too(self):
        self.trial("train-1-000", delay=0.5, incidents=[self.incident("cpu_contention", confidence=0.9)])
        self.trial("train-1-001", delay=0.5, incidents=[self.incident("block_io", confidence=0.6)])
        self.trial("train-1-002", slow_ms=100, incidents=[self.incident("block_io", confidence=0.7)])
        self.trial("train-1-003", delay=0.5, incidents=[self.incident("abstain")])
        made = self.scored()["calibration"]
        self.assertEqual(made["reliability"]["claims"], 3)
        self.assertAlmostEqual(made["reliability"]["brier"], (0.1 ** 2 + 0.6 ** 2 + 0.7 ** 2) / 3, places=4)
        self.assertEqual(made["risk_coverage"], [[0.333, 0.0], [0.667, 0.5]], "of three effective trials")

    def test_seen_too_late_or_never_is_not_in_time(self):
        for number, seen_s in enumerate((1.0, 2.0)):
            self.trial(f"train-1-00{number}", delay=0.5, incidents=[self.incident("cpu_contention")], seen_s=seen_s)
        self.trial("train-1-002", delay=0.5)
        delays = self.scored()["delays"]
        self.assertEqual((delays["of"], delays["seen_in_time"], delays["named_in_time"]), (3, 1, 2))
        self.assertEqual(len(delays["seen_s"]), 2)
        self.assertIsNone(delays["seen_p95_s"], "one of three was never detected")

    def test_trials_without_a_cause_cannot_be_named_late(self):
        self.trial("train-1-000", delay=0.5, incidents=[self.incident("cpu_contention")])
        self.trial("train-1-001", intended="", incidents=[self.incident("abstain")])
        delays = self.scored()["delays"]
        self.assertEqual((delays["of"], delays["with_cause"], delays["named_in_time"]), (2, 1, 1))
        self.assertIsNotNone(delays["named_p95_s"])

    def test_voids_are_counted_by_their_reasons(self):
        self.trial("train-1-000", delay=0.5, foreign=0.2)
        self.trial("train-1-001", delay=0.5, foreign=0.3)
        self.trial("train-1-002", slow_ms=9500)
        result = self.scored()
        self.assertEqual((result["void"], result["void_reasons"]), (2, {"foreign CPU": 2}))
        self.assertIn("2 void (2× foreign CPU)", report.text(result))

    def test_foreign_load_makes_a_run_void(self):
        self.trial(delay=0.5, foreign=0.2, incidents=[self.incident("cpu_contention")])
        result = self.scored()
        self.assertEqual((result["void"], result["used"]), (1, 0))
        self.assertFalse(result["foreign_load"])
        result = self.scored(with_foreign_load=True)
        self.assertEqual(result["used"], 1)
        self.assertTrue(result["foreign_load"])

    def test_right_wrong_abstain_and_false_alarms_are_counted_separately(self):
        self.trial("train-1-000", delay=0.5, incidents=[self.incident("cpu_contention")])
        self.trial("train-1-001", delay=0.5, incidents=[self.incident("block_io")])
        self.trial("train-1-002", delay=0.5, incidents=[self.incident("abstain")])
        self.trial("train-1-003", delay=0.5)
        self.trial("train-1-004", slow_ms=100, incidents=[self.incident("cpu_contention")])
        self.trial("train-1-005", slow_ms=100)
        result = self.scored()
        judged = result["asked"]["gpusonde"]
        effective = judged["effective"]
        self.assertEqual(effective["confusion"], {f"cpu_contention → {said}": 1 for said in
                                               ("cpu_contention", "block_io", "abstain", "none")})
        self.assertEqual(effective["accuracy"][0], 0.25)
        self.assertEqual(effective["seen"][0], 0.75)
        self.assertEqual((judged["false_alarms"], judged["negatives"]), (1, 2))
        text = report.text(result)
        self.assertIn("gpusonde, effective: 1 of 4 right [0.25, ", text)
        self.assertIn("false alarms 1 of 2 negatives, at most 0.9747", text)

    def test_an_incident_elsewhere_is_no_answer(self):
        self.trial(delay=0.5, incidents=[dict(self.incident("cpu_contention", 6 * SECOND), end_ns=8 * SECOND + OFFSET)])
        self.assertEqual(self.scored()["asked"]["gpusonde"]["effective"]["confusion"], {"cpu_contention → none": 1})

    def test_delays_count_from_the_end_of_the_first_slow_step(self):
        self.trial(delay=0.5, incidents=[self.incident("cpu_contention")])
        delays = self.scored()["delays"]
        self.assertEqual(delays["of"], 1)
        self.assertAlmostEqual(delays["seen_s"][0], 0.8, places=2)
        self.assertEqual(delays["seen_from_onset_s"], [1.0])

    def test_a_slow_down_begins_with_the_first_slow_step_that_others_follow(self):
        ms = 1_000_000

        def first(*lengths_ms):
            ends = list(itertools.accumulate(lengths_ms))
            steps = [((end - length) * ms, end * ms, 0, 0, 0) for end, length in zip(ends, lengths_ms)]
            found_ns = label.first_slow_ns(steps, [(0, (ends[-1] - 1_000) * ms)], 20)
            return found_ns and found_ns // ms

        self.assertEqual(first(*[20] * 100, 30, *[20] * 100, *[30] * 50), 2_000 + 30 + 2_000 + 30)  # 30 alone is chance
        self.assertTrue(3_000 < first(*[5, 35] * 100, *[5, 55] * 40) <= 4_060)  # every other one is long, slow or not
        self.assertIsNone(first(*[5, 35] * 100))
        self.assertEqual(first(*[20] * 10, 4_000, *[20] * 60), 200 + 4_000)

    def test_predictions_that_were_changed_are_not_scored(self):
        self.trial(delay=0.5)
        self.scored()
        path = self.out / "predictions-train.json"
        path.write_text(path.read_text().replace("none", "some") + " ")
        with self.assertRaises(score.NotFrozen):
            score.score(self.out, "train", False)
        self.assertEqual(len((self.out / "openings.log").read_text().splitlines()), 1)

    def test_a_ramp_grows_to_the_amount_and_never_beyond(self):
        self.assertEqual([faults.scaled("compute", 4, share) for share in faults.RAMP], [1, 3, 4])
        self.assertEqual([faults.scaled("gpu-power-cap", 150, share) for share in faults.RAMP], [450, 225, 150])
        self.assertEqual([round(faults.scaled("quota", 0.4, share), 2) for share in faults.RAMP], [1.2, 0.6, 0.4])

    @staticmethod
    def entries(split):
        """[(fault, victims, amounts, intended), …] of a split, pairs included."""
        tables, pairs = {"train": ((manifest.TRAIN, manifest.TRAIN_NEGATIVES), manifest.TRAIN_PAIRS),
                         "test": ((manifest.TEST, manifest.TEST_NEGATIVES), manifest.TEST_PAIRS)}[split]
        return [(fault, *rest) for table in tables for fault, rest in table.items()] + [
            (fault, (victim,), (amount,), intended) for victim, pair in pairs.items() for fault, amount, intended in pair]

    def test_every_fault_of_the_manifest_has_an_injector_and_every_victim_a_program(self):
        for split in ("train", "test"):
            for fault, victims, _, _ in self.entries(split):
                self.assertIn(fault, faults.FAULTS)
                self.assertLessEqual(set(victims), manifest.VICTIMS.keys())

    def test_a_manifest_is_its_seeds(self):
        self.assertEqual(manifest.make("train", 3, 30), manifest.make("train", 3, 30))
        self.assertNotEqual(manifest.make("train", 3, 30), manifest.make("train", 4, 30))
        self.assertNotEqual([one.seed for one in manifest.make("train", 3, 30)],
                            [one.seed for one in manifest.make("test", 3, 30)])

    def test_forty_rounds_have_forty_trials_of_each_cause_seventy_six_pairs_and_236_negatives(self):
        for split, tables in (("train", manifest.TRAIN), ("test", manifest.TEST)):
            trials = manifest.make(split, 5, 40 * (len({one[2] for one in tables.values()}) + 8))
            without_model = {fault for fault, (_, _, intended) in tables.items() if not intended}
            alone = collections.Counter(one.intended for one in trials if one.intended and not one.also)
            self.assertEqual(alone, {one[2]: 40 for one in tables.values() if one[2]})
            self.assertGreaterEqual(sum(not one.intended and one.fault not in without_model for one in trials), 236)
            self.assertGreaterEqual(sum(bool(one.also) for one in trials), 76)

    def test_every_cause_is_tried_with_three_workloads_but_for_a_slower_cpu(self):
        workloads = {}
        for _, victims, _, intended in self.entries("test"):
            workloads.setdefault(intended, set()).update(victims)
        self.assertEqual({cause for cause, victims in workloads.items() if len(victims) < 3}, {"slow_cpu"})

    def test_the_splits_share_no_victim_and_no_injector_but_every_cause(self):
        train, test = self.entries("train"), self.entries("test")
        self.assertEqual({one[0] for one in train} & {one[0] for one in test}, set())
        victims = [{victim for one in split for victim in one[1]} for split in (train, test)]
        self.assertEqual(victims[0] & victims[1], set())
        commands = [{tuple(manifest.VICTIMS[victim]) for victim in names} for names in victims]
        self.assertEqual(commands[0] & commands[1], set(), "another name is not another workload")
        self.assertLessEqual({one[3] for one in train}, {one[3] for one in test})


if __name__ == "__main__":
    unittest.main()
