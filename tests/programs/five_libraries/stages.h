// SPDX-License-Identifier: Apache-2.0
#pragma once

// Five libraries that call each other, each in a different way; every thread passes through all of them.
namespace five {

// Each runs `rounds` rounds of itself and of its callees, and returns a number that depends on them.
long FirstLibrary(long rounds);   // through a virtual function
long SecondLibrary(long rounds);  // through qsort, from the C library back into this one
long ThirdLibrary(long rounds);   // recursively, in frames of a size known at run time only
long FourthLibrary(long rounds);  // with the stack realigned, and with exceptions
long FifthLibrary(long rounds);   // the work, partly in the C and C++ libraries

}  // namespace five
