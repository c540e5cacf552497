// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

#include "sources/cupti/event.h"
#include "wire/gpu_event.h"

// Reads single records of the inject library. They come from untrusted processes: every function returns
// nullopt for a record that can't be true, such as one that ends before it starts.
namespace gpusonde::cupti {

std::optional<SessionBegin> Read(const gpusonde_gpu_session_begin& wire);
std::optional<SessionBegin> Read(const gpusonde_gpu_snapshot_begin& wire);
std::optional<SessionEnd> Read(const gpusonde_gpu_session_end& wire);
std::optional<Overhead> Read(const gpusonde_gpu_overhead& wire);

// Without names, which are records of their own.
std::optional<Kernel> Read(const gpusonde_gpu_kernel& wire);
std::optional<Memcpy> Read(const gpusonde_gpu_memcpy& wire);
std::optional<Memset> Read(const gpusonde_gpu_memset& wire);
std::optional<Sync> Read(const gpusonde_gpu_sync& wire);
std::optional<Total> Read(const gpusonde_gpu_total& wire);
std::optional<Call> Read(const gpusonde_gpu_call& wire);
std::optional<GraphNode> Read(const gpusonde_gpu_graph_node& wire);

// The texts of the results point into `wire`.
std::optional<Device> Read(const gpusonde_gpu_device& wire);
std::optional<Foreign> Read(const gpusonde_gpu_foreign& wire);
std::optional<Communicator> Read(const gpusonde_gpu_communicator& wire);
std::optional<Collective> Read(const gpusonde_gpu_collective& wire);

// `texts` is what follows the record's fixed part; the result points into it.
std::optional<Range> Read(const gpusonde_gpu_range& wire, std::string_view texts);

}  // namespace gpusonde::cupti
