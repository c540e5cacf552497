# SPDX-License-Identifier: Apache-2.0
"""The example's model, so that its results can be checked: softmax regression of a record's class, in plain Python on the
CPU. The GPU's replayed work computes nothing of it."""

import math
import random
from operator import mul


def softmax(row):
    highest = max(row)
    powers = [math.exp(value - highest) for value in row]
    total = sum(powers)
    return [power / total for power in powers]


class Model:
    def __init__(self, features, classes, seed=1):
        generator = random.Random(seed)
        self.weights = [[generator.gauss(0, 1 / math.sqrt(features)) for _ in range(features)] for _ in range(classes)]

    def forward(self, inputs):
        """The probability of every class for every input; keeps what backward needs."""
        self.inputs = inputs
        self.probabilities = [softmax([sum(map(mul, row, weights)) for weights in self.weights]) for row in inputs]

    def loss(self, labels):
        """Mean cross entropy of the last forward pass."""
        return -sum(math.log(max(row[label], 1e-12)) for row, label in zip(self.probabilities, labels)) / len(labels)

    def backward(self, labels):
        """The gradient of the loss by the weights."""
        errors = [[(p - (i == label)) / len(labels) for i, p in enumerate(row)]
                  for row, label in zip(self.probabilities, labels)]
        columns = list(zip(*self.inputs))
        return [[sum(map(mul, error, column)) for column in columns] for error in zip(*errors)]

    def optimizer_step(self, gradient, rate):
        for row, change in zip(self.weights, gradient):
            row[:] = [value - rate * delta for value, delta in zip(row, change)]
