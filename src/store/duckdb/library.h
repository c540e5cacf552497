// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <duckdb.h>

#include "base/result.h"

// DuckDB is opened when it is first needed, so that commands which never store anything (the agent) don't
// carry its 60 MB.
namespace gpusonde::store::duckdb {

// The functions of DuckDB's C API that we call; X(open_ext) stands for duckdb_open_ext.
// clang-format off: it would indent each of these calls further than the one before
#define GPUSONDE_DUCKDB_FUNCTIONS(X)                                                                      \
  X(append_data_chunk) X(appender_add_column) X(appender_close) X(appender_create_ext)                    \
  X(appender_destroy) X(appender_error) X(array_type_array_size)                                          \
  X(array_type_child_type) X(array_vector_get_child) X(bind_double) X(bind_int64) X(bind_value)           \
  X(bind_varchar_length) X(close) X(column_count) X(column_logical_type) X(column_name) X(connect)        \
  X(create_bit) X(create_blob) X(create_config) X(create_data_chunk) X(create_date)                       \
  X(create_decimal) X(create_hugeint) X(create_interval) X(create_list_type) X(create_list_value) X(create_logical_type)       \
  X(create_time) X(create_time_ns) X(create_time_tz_value) X(create_timestamp) X(create_timestamp_ms)     \
  X(create_timestamp_ns) X(create_timestamp_s) X(create_timestamp_tz) X(create_uhugeint) X(create_uuid)   \
  X(data_chunk_get_size) X(data_chunk_get_vector) X(data_chunk_reset) X(data_chunk_set_size)              \
  X(decimal_internal_type) X(decimal_scale) X(decimal_width) X(destroy_config) X(destroy_data_chunk)      \
  X(destroy_extracted) X(extract_statements) X(extract_statements_error)                                  \
  X(destroy_logical_type) X(destroy_pending) X(destroy_prepare) X(destroy_result) X(destroy_value)        \
  X(disconnect) X(enum_dictionary_size) X(enum_dictionary_value) X(enum_internal_type)                    \
  X(execute_pending) X(fetch_chunk) X(free) X(get_type_id) X(get_varchar) X(interrupt)                   \
  X(library_version) X(list_type_child_type) X(list_vector_get_child) X(list_vector_reserve)              \
  X(list_vector_set_size) X(map_type_key_type) X(map_type_value_type) X(nparams) X(open_ext)              \
  X(pending_error) X(pending_execute_task) X(pending_execution_is_finished) X(pending_prepared) X(prepare) \
  X(prepare_error) X(prepare_extracted_statement) X(prepared_statement_type)                             \
  X(result_error) X(set_config) X(struct_type_child_count) X(struct_type_child_name)             \
  X(struct_type_child_type) X(struct_vector_get_child) X(union_type_member_count)                         \
  X(union_type_member_name) X(union_type_member_type) X(vector_assign_string_element_len)                 \
  X(vector_ensure_validity_writable) X(vector_get_data) X(vector_get_validity) X(vector_size)
// clang-format on

// One pointer per function, under its name without "duckdb_".
struct Library {
#define GPUSONDE_DUCKDB_POINTER(name) decltype(&::duckdb_##name) name = nullptr;
  GPUSONDE_DUCKDB_FUNCTIONS(GPUSONDE_DUCKDB_POINTER)
#undef GPUSONDE_DUCKDB_POINTER
};

// Opens libduckdb.so, once per process; it stays open. Looked for in GPUSONDE_DUCKDB (a path; nothing else is
// tried then), beside the program (../lib of an installation, ../../deps/duckdb of a build tree), and where
// the system's loader looks. Errors: kUnavailable, with what to do. Thread-safe.
Result<const Library*> LoadLibrary();

}  // namespace gpusonde::store::duckdb
