# SPDX-License-Identifier: Apache-2.0
"""Where the arithmetic of training is done. The model goes through this module alone, so that another device is
another module with the same functions.

A matrix is a list of rows, a row a list of floats.
"""

from operator import mul


def matmul(a, b):
    """a × b."""
    columns = list(zip(*b))
    return [[sum(map(mul, row, column)) for column in columns] for row in a]


def transpose(a):
    return [list(column) for column in zip(*a)]


def relu(a):
    return [[value if value > 0 else 0.0 for value in row] for row in a]


def relu_gradient(gradient, output):
    """What of `gradient` passes back through the relu whose result was `output`."""
    return [[g if value > 0 else 0.0 for g, value in zip(*rows)] for rows in zip(gradient, output)]


def subtract_scaled(a, b, factor):
    """a −= factor × b, in place."""
    for row, other in zip(a, b):
        row[:] = [value - factor * change for value, change in zip(row, other)]
