// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "wire/nvidia/cupti.h"

namespace gpusonde::inject {

// The functions of the libcupti in this process; null only where marked.
struct Cupti {
  gpusonde_cupti_get_version_fn* get_version;
  gpusonde_cupti_subscribe_fn* subscribe;
  gpusonde_cupti_subscribe_v2_fn* subscribe_v2;  // may be null: before CUDA 12.9
  gpusonde_cupti_unsubscribe_fn* unsubscribe;
  gpusonde_cupti_enable_callback_fn* enable_callback;
  gpusonde_cupti_activity_kind_fn* activity_enable;
  gpusonde_cupti_activity_kind_fn* activity_disable;
  gpusonde_cupti_activity_register_callbacks_fn* register_callbacks;
  gpusonde_cupti_activity_register_timestamp_callback_fn* register_timestamp;
  gpusonde_cupti_activity_flush_all_fn* flush_all;
  gpusonde_cupti_activity_get_next_record_fn* get_next_record;
  gpusonde_cupti_activity_get_num_dropped_records_fn* get_dropped;
  gpusonde_cupti_get_device_id_fn* get_device_id;
  gpusonde_cupti_get_context_id_fn* get_context_id;
  gpusonde_cupti_get_graph_id_fn* get_graph_id;
  gpusonde_cupti_get_graph_node_id_fn* get_graph_node_id;
  gpusonde_cupti_finalize_fn* finalize;  // may be null
  uint32_t version;                      // from cuptiGetVersion: 18 for CUDA 12.0, 130001 for 13.0
};

// Finds libcupti: the one that is already loaded, else one of the major version of the process's CUDA
// runtime: beside the runtime (where pip and the toolkits install it), on the dynamic linker's path, in
// CUDA_HOME, or in /usr/local/cuda. Null when there is none, or one before CUDA 12. After a failure it looks
// again once the process has loaded another library, or a minute later. Not thread-safe.
const Cupti* FindCupti();

}  // namespace gpusonde::inject
