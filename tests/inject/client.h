// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

// Parts of the client (client.cpp).

// Forks up to `count` times while two other threads call `use`, as each child does, too. Prints how many
// children hang; ends with the first.
void ForkWithin(long count, void (*use)());

// Executes a word that calls the library as NCCL does (client_nccl.cpp); false for others.
bool DoNccl(std::string_view word, long value);
