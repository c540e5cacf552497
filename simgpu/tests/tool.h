// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "simgpu/tests/client.h"
#include "wire/nvidia/cupti.h"

namespace simgpu::tests {

// A client of libcupti that keeps all records. One per process: CUPTI's buffer callbacks have no user data.
struct Tool {
  void* cupti;
  gpusonde_cupti_subscriber_handle subscriber = nullptr;
  std::function<void(uint32_t domain, uint32_t id, const void* data)> on_callback;
  size_t buffer_bytes = 4096;
  bool no_room = false;

  std::mutex mutex;
  std::deque<std::vector<uint64_t>> buffers;  // of 8-byte words, for their alignment
  std::vector<gpusonde_cupti_kernel> kernels;
  std::vector<std::string> names;  // of the kernels, at the time of the buffer's completion
  std::vector<gpusonde_cupti_memcpy> copies;
  std::vector<gpusonde_cupti_memset> memsets;
  std::vector<gpusonde_cupti_synchronization> syncs;
  std::vector<gpusonde_cupti_graph_trace> graphs;
  size_t records = 0;
  size_t completed = 0;  // buffers
  size_t dropped = 0;
  bool read_names = true;

  explicit Tool(const char* library = "libcupti.so.13") : cupti(Open(library)) {
    the_one() = this;
    EXPECT_EQ(Symbol<gpusonde_cupti_activity_register_callbacks_fn>(cupti, "cuptiActivityRegisterCallbacks")(
                  [](uint8_t** buffer, size_t* bytes, size_t* max_records) {
                    the_one()->Requested(buffer, bytes, max_records);
                  },
                  [](void*, uint32_t, uint8_t* buffer, size_t, size_t valid) {
                    the_one()->Completed(buffer, valid);
                  }),
              0);
  }

  static Tool*& the_one() {
    static Tool* tool = nullptr;
    return tool;
  }

  int32_t Subscribe() {
    return Symbol<gpusonde_cupti_subscribe_fn>(cupti, "cuptiSubscribe")(
        &subscriber,
        [](void* user, uint32_t domain, uint32_t id, const void* data) {
          auto* tool = static_cast<Tool*>(user);
          if (tool->on_callback) tool->on_callback(domain, id, data);
        },
        this);
  }
  void Unsubscribe() {
    EXPECT_EQ(Symbol<gpusonde_cupti_unsubscribe_fn>(cupti, "cuptiUnsubscribe")(subscriber), 0);
  }
  void EnableDomain(uint32_t domain) {
    EXPECT_EQ(Symbol<gpusonde_cupti_enable_domain_fn>(cupti, "cuptiEnableDomain")(1, subscriber, domain), 0);
  }
  void EnableKind(uint32_t kind) {
    EXPECT_EQ(Symbol<gpusonde_cupti_activity_kind_fn>(cupti, "cuptiActivityEnable")(kind), 0);
  }
  int32_t Flush(uint32_t flag = 0) {
    return Symbol<gpusonde_cupti_activity_flush_all_fn>(cupti, "cuptiActivityFlushAll")(flag);
  }

  void Requested(uint8_t** buffer, size_t* bytes, size_t* max_records) {
    *max_records = 0;
    if (no_room) {
      *buffer = nullptr;
      *bytes = 0;
      return;
    }
    const std::lock_guard lock(mutex);
    *buffer = reinterpret_cast<uint8_t*>(buffers.emplace_back(buffer_bytes / 8).data());
    *bytes = buffer_bytes;
  }

  // Records of an older CUPTI are shorter than ours, and the last one ends with the buffer.
  template <class T>
  static T Read(const void* record, const uint8_t* end) {
    T value{};
    std::memcpy(&value, record,
                std::min(sizeof value, static_cast<size_t>(end - static_cast<const uint8_t*>(record))));
    return value;
  }

  void Completed(uint8_t* buffer, size_t valid) {
    static auto* next =
        Symbol<gpusonde_cupti_activity_get_next_record_fn>(cupti, "cuptiActivityGetNextRecord");
    const std::lock_guard lock(mutex);
    ++completed;
    void* record = nullptr;
    const uint8_t* const end = buffer + valid;
    while (next(buffer, valid, &record) == 0) {
      ++records;
      switch (*static_cast<const uint32_t*>(record)) {
        case GPUSONDE_CUPTI_KIND_KERNEL:
        case GPUSONDE_CUPTI_KIND_CONCURRENT_KERNEL:
          kernels.push_back(Read<gpusonde_cupti_kernel>(record, end));
          names.emplace_back(read_names && kernels.back().name != nullptr ? kernels.back().name : "");
          break;
        case GPUSONDE_CUPTI_KIND_MEMCPY:
          copies.push_back(Read<gpusonde_cupti_memcpy>(record, end));
          break;
        case GPUSONDE_CUPTI_KIND_MEMSET:
          memsets.push_back(Read<gpusonde_cupti_memset>(record, end));
          break;
        case GPUSONDE_CUPTI_KIND_SYNCHRONIZATION:
          syncs.push_back(Read<gpusonde_cupti_synchronization>(record, end));
          break;
        case GPUSONDE_CUPTI_KIND_GRAPH_TRACE:
          graphs.push_back(Read<gpusonde_cupti_graph_trace>(record, end));
          break;
        default:
          break;
      }
    }
    size_t lost = 0;
    EXPECT_EQ(Symbol<gpusonde_cupti_activity_get_num_dropped_records_fn>(
                  cupti, "cuptiActivityGetNumDroppedRecords")(nullptr, 0, &lost),
              0);
    dropped += lost;
  }

  int64_t KernelNs() const {
    int64_t sum_ns = 0;
    for (const auto& kernel : kernels) sum_ns += static_cast<int64_t>(kernel.end - kernel.start);
    return sum_ns;
  }
};

}  // namespace simgpu::tests
