// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "inject/cupti.h"

// CUPTI has one subscriber. While that is us, another tool that the program starts (PyTorch's profiler above
// all) would fail to subscribe and see no GPU work. So calls of cuptiSubscribe from libraries that were
// linked with libcupti come to us first, and we leave CUPTI to them (docs/decisions/0101). Tools that look
// the function up with dlsym are not seen.
namespace gpusonde::inject {

// Called on the thread of the other tool, before it subscribes; `holder` is the file name of its library.
using YieldFunction = void(const char* holder);

// Redirects the calls of all libraries that are loaded and relocated now, by their global offset tables;
// libraries that were redirected already keep it. One thread at a time, with StopRedirecting. Does not wait
// for the loader.
void RedirectRivals(const Cupti& cupti, YieldFunction* yield);

// Undoes it: the program is as we found it.
void StopRedirecting();

}  // namespace gpusonde::inject
