// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace gpusonde {

// The chance that a standard normal number is above z.
double NormalTail(double z);

// The chance that Student's t with these degrees of freedom (1 or more) is above t, within 0.001 from 4 of
// them on (Wallace 1959); and the t above which it is with this chance (above 0, below 1/2).
double StudentTail(double t, double freedom);
double StudentQuantile(double tail, double freedom);

}  // namespace gpusonde
