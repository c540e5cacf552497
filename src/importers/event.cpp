// SPDX-License-Identifier: Apache-2.0
#include "importers/event.h"

#include <array>
#include <utility>

#include "base/ascii.h"

namespace gpusonde::importers {

std::string_view Name(CopyKind kind) {
  constexpr std::string_view kNames[] = {"unknown", "htod", "dtoh", "dtod", "ptop", "htoh"};
  return kNames[static_cast<size_t>(kind)];
}

std::string_view Name(MemoryKind kind) {
  constexpr std::string_view kNames[] = {"unknown", "pageable", "pinned", "device", "managed"};
  return kNames[static_cast<size_t>(kind)];
}

std::string_view Name(SyncKind kind) {
  constexpr std::string_view kNames[] = {"unknown", "event", "stream_wait", "stream", "context"};
  return kNames[static_cast<size_t>(kind)];
}

std::string_view Name(Operation operation) {
  constexpr std::string_view kNames[] = {"unknown",    "all_reduce",  "all_gather", "reduce_scatter",
                                         "all_to_all", "broadcast",   "reduce",     "gather",
                                         "scatter",    "send_receive"};
  return kNames[static_cast<size_t>(operation)];
}

Operation OperationOf(std::string_view name) {
  // The first whose text is in the name's letters counts: "reduce" is part of "allreduce".
  constexpr std::array<std::pair<std::string_view, Operation>, 11> kTexts = {{
      {"allreduce", Operation::kAllReduce},
      {"allgather", Operation::kAllGather},
      {"reducescatter", Operation::kReduceScatter},
      {"alltoall", Operation::kAllToAll},
      {"broadcast", Operation::kBroadcast},
      {"reduce", Operation::kReduce},
      {"gather", Operation::kGather},
      {"scatter", Operation::kScatter},
      {"send", Operation::kSendReceive},
      {"recv", Operation::kSendReceive},
      {"p2p", Operation::kSendReceive},
  }};
  constexpr size_t kMaxName = 64;
  std::array<char, kMaxName> letters{};
  size_t size = 0;
  for (const char c : name.substr(0, kMaxName))
    if (c != '_') letters[size++] = Lower(c);
  const std::string_view plain(letters.data(), size);
  // PyTorch's barrier is an all-reduce of a byte, which says nothing about bandwidth.
  if (plain.find("barrier") != std::string_view::npos) return Operation::kUnknown;
  for (const auto& [text, operation] : kTexts)
    if (plain.find(text) != std::string_view::npos) return operation;
  return Operation::kUnknown;
}

void EventBatch::Flush(EventSink& sink) {
  if (!gpu_details.empty() || !spans.empty() || !syncs.empty() || !allocations.empty())
    sink.Detailed(*this);
  else if (!gpu.empty())
    sink.Gpu(gpu);
  if (!calls.empty()) sink.Api(calls);
  if (!ranges.empty()) sink.Ranges(ranges);
  if (!communication.empty()) sink.Communication(communication);
  if (!messages.empty()) sink.Messages(messages);
  if (others != 0) sink.Other(others);
  gpu.clear();
  calls.clear();
  ranges.clear();
  communication.clear();
  messages.clear();
  gpu_details.clear();
  spans.clear();
  syncs.clear();
  allocations.clear();
  others = 0;
}

}  // namespace gpusonde::importers
