# SPDX-License-Identifier: Apache-2.0
"""Tests of fit.py, with a ranker of two causes in place of the program."""

import json
import math
import unittest

import fit
import score

TABLE = '''struct CauseWeights {
  struct {
    Tuned<double> scale{6, "nats", "a reason, with a comma"};
    Tuned<double> even_share{
        0.36, "of the lost time",
        "a reason"};
  } causes;
  struct {
    Tuned<double> min_rise_share{1. / 3, "of the rate during",
                                 "a reason"};
  } packet_loss;
};
'''


class Sigmoid:
    """Two causes: the confidence of `disk` grows with a feature times the first weight, `cpu` doesn't depend on any."""

    def __init__(self, incidents):
        self.incidents = incidents

    def verdicts(self, values):
        made = []
        for one in self.incidents:
            disk = 1 / (1 + math.exp(-values[0] * json.loads(one.situation)["feature"]))
            made.append(["disk" if disk > 0.5 else "abstain", {"disk": disk, "cpu": 0.1}])
        return made


def incident(feature, *labels, victim="trainer", weight=1.0):
    return fit.Incident(f"trial {feature}", victim, json.dumps({"feature": feature}), frozenset(labels), weight)


class Table(unittest.TestCase):
    def test_names_values_and_units_are_read_in_order(self):
        weights = fit.read_table(TABLE)
        self.assertEqual([(one.name, round(one.value, 3), one.unit) for one in weights],
                         [("causes.scale", 6, "nats"), ("causes.even_share", 0.36, "of the lost time"),
                          ("packet_loss.min_rise_share", 0.333, "of the rate during")])

    def test_every_weight_of_the_product_is_read(self):
        text = fit.WEIGHTS.read_text()
        self.assertEqual(len(fit.read_table(text)), text.count("Tuned<double> "))

    def test_only_changed_values_are_replaced(self):
        weights = fit.read_table(TABLE)
        self.assertEqual(fit.replaced(TABLE, weights, [weight.value for weight in weights]), TABLE)
        self.assertEqual(fit.replaced(TABLE, weights, [4.2, 0.36, 1 / 3]), TABLE.replace("{6,", "{4.2,"))

    def test_shares_stay_at_most_one(self):
        share = fit.read_table(TABLE)[1]
        self.assertTrue(share.may_be(0.9))
        self.assertFalse(share.may_be(1.1))


class Fitting(unittest.TestCase):
    WEIGHTS = fit.read_table(TABLE)

    def test_labels_move_the_weight_that_they_say_something_about(self):
        # The feature always speaks for the disk, and it was the disk: the weight should be larger, and no other changes.
        ranker = Sigmoid([incident(0.3, "disk") for _ in range(300)])
        values = fit.fit(ranker, self.WEIGHTS)
        self.assertGreater(values[0], 1.2 * self.WEIGHTS[0].value)
        self.assertEqual(values[1:], [one.value for one in self.WEIGHTS[1:]])

    def test_weights_that_are_held_stay(self):
        held = fit.Weight(fit.HELD[1], 6, "nats", 0, 0)
        self.assertEqual(fit.fit(Sigmoid([incident(0.3, "disk")] * 30), [held]), [6])

    def test_few_trials_move_nothing_far(self):
        once = fit.fit(Sigmoid([incident(0.3, "disk")]), self.WEIGHTS)
        often = fit.fit(Sigmoid([incident(0.3, "disk")] * 30), self.WEIGHTS)
        self.assertLess(once[0], often[0])

    def test_importance_is_the_change_of_the_loss(self):
        share, *others = fit.importances(Sigmoid([incident(0.3, "disk")]), self.WEIGHTS)
        self.assertAlmostEqual(share.halved, math.log(1 + math.exp(-0.9)) - math.log(1 + math.exp(-1.8)))
        self.assertLess(share.doubled, 0)
        self.assertEqual([(one.halved, one.answers) for one in others], [(0, 0), (0, 0)])

    def test_a_held_out_victim_is_judged_by_the_others_weights(self):
        misleading = [incident(0.3, "disk", victim="trainer")] * 300 + [incident(0.3, victim="server")]
        table, fitted = fit.held_out(Sigmoid(misleading), self.WEIGHTS)
        self.assertGreater(fitted, table)

    def test_right_answers_count_by_the_weight_of_their_incident(self):
        incidents = [incident(1, "disk"), incident(1, "cpu", weight=0.5), incident(-1), incident(1)]
        self.assertEqual(fit.right(incidents, Sigmoid(incidents).verdicts([6])), (2.0, 3.5))


class Selection(unittest.TestCase):
    def trial(self, state="effective", void=None, situations=None):
        record = {"plan": {"victim": "trainer"}, "begin_ns": 0, "end_ns": 9_000_000_000, "epoch_offset_ns": 0, "logged_pid": 4}
        found = [{"id": name, "pid": 4, "start_ns": 1, "end_ns": 2_000_000_000, "cause": "disk", "causes": []} for name in "ab"]
        return score.Trial("train-1-000", record, {"void": void, "state": state, "causes": ["disk"]},
                           {"replayed": {"incidents": found}, "situations": situations})

    def test_a_trial_has_a_weight_of_one(self):
        used = fit.incidents_of([self.trial(situations={"a": {"x": 1}, "b": {"x": 2}})])
        self.assertEqual([one.weight for one in used], [0.5, 0.5])

    def test_void_trials_negatives_and_those_without_situations_are_left_out(self):
        good = {"a": {}, "b": {}}
        self.assertEqual(fit.incidents_of([self.trial(void="foreign load", situations=good), self.trial("negative", situations=good),
                                           self.trial()]), [])


if __name__ == "__main__":
    unittest.main()
