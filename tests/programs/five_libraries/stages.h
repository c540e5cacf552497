// SPDX-License-Identifier: Apache-2.0
#pragma once

// Five libraries that call each other, each in its own manner; every thread goes through all of them.
namespace five {

// Each does `rounds` rounds of its own and of all that it calls, and returns a number that depends on them.
long FirstLibrary(long rounds);   // through a virtual function
long SecondLibrary(long rounds);  // through qsort, from the C library back into this one
long ThirdLibrary(long rounds);   // recursively, in frames of a size known at run time only
long FourthLibrary(long rounds);  // with the stack realigned, and with exceptions
long FifthLibrary(long rounds);   // the work: partly its own, partly the C and C++ libraries'

}  // namespace five
