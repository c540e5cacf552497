# SPDX-License-Identifier: Apache-2.0
"""A network of two layers that learns, by plain gradient descent, which class a record is of."""

import math
import random

import device


def softmax(row):
    highest = max(row)
    powers = [math.exp(value - highest) for value in row]
    total = sum(powers)
    return [power / total for power in powers]


class Model:
    def __init__(self, features, hidden, classes, seed=1):
        generator = random.Random(seed)

        def weights(rows, columns):
            return [[generator.gauss(0, 1 / math.sqrt(rows)) for _ in range(columns)] for _ in range(rows)]

        self.layer1 = weights(features, hidden)
        self.layer2 = weights(hidden, classes)

    def forward(self, inputs):
        """The probability of every class for every input; what backward needs is kept."""
        self.inputs = inputs
        self.hidden = device.relu(device.matmul(inputs, self.layer1))
        self.probabilities = [softmax(row) for row in device.matmul(self.hidden, self.layer2)]
        return self.probabilities

    def loss(self, labels):
        """Mean cross entropy of the last forward."""
        return -sum(math.log(max(row[label], 1e-12)) for row, label in zip(self.probabilities, labels)) / len(labels)

    def backward(self, labels):
        """The gradients of the loss by both layers."""
        error = [[(p - (i == label)) / len(labels) for i, p in enumerate(row)]
                 for row, label in zip(self.probabilities, labels)]
        gradient2 = device.matmul(device.transpose(self.hidden), error)
        passed = device.relu_gradient(device.matmul(error, device.transpose(self.layer2)), self.hidden)
        return device.matmul(device.transpose(self.inputs), passed), gradient2

    def optimizer_step(self, gradients, rate):
        device.subtract_scaled(self.layer1, gradients[0], rate)
        device.subtract_scaled(self.layer2, gradients[1], rate)
