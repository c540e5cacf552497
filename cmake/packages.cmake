# SPDX-License-Identifier: Apache-2.0
# Everything from outside, found once. tools/setup installs what is missing here.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(Boost 1.81 REQUIRED)
find_package(Protobuf REQUIRED)
find_package(ZLIB REQUIRED)
pkg_check_modules(LIBBPF REQUIRED IMPORTED_TARGET libbpf)
pkg_check_modules(LIBELF REQUIRED IMPORTED_TARGET libelf)
pkg_check_modules(LIBDW REQUIRED IMPORTED_TARGET libdw)
pkg_check_modules(MPI REQUIRED IMPORTED_TARGET ompi-c)
pkg_check_modules(ISAL REQUIRED IMPORTED_TARGET libisal)
pkg_check_modules(SIMDJSON REQUIRED IMPORTED_TARGET simdjson)
pkg_check_modules(SQLITE3 REQUIRED IMPORTED_TARGET sqlite3)
pkg_check_modules(SODIUM REQUIRED IMPORTED_TARGET libsodium)
pkg_check_modules(ZSTD REQUIRED IMPORTED_TARGET libzstd)
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)
if(GPUSONDE_TESTS)
  find_package(GTest REQUIRED)
  include(GoogleTest)
endif()
if(GPUSONDE_BENCH)
  pkg_check_modules(GMP REQUIRED IMPORTED_TARGET gmp)
  find_package(benchmark REQUIRED)
endif()

# DuckDB: a system install if there is one, else what `make setup` took from npm (tools/duckdb). The library is
# opened at run time, so only the header is needed to build.
find_path(DUCKDB_INCLUDE_DIR duckdb.h
  PATHS ${CMAKE_SOURCE_DIR}/build/deps/duckdb REQUIRED)
find_file(DUCKDB_LIBRARY_FILE libduckdb.so
  PATHS /usr/lib /usr/local/lib /usr/lib/x86_64-linux-gnu ${CMAKE_SOURCE_DIR}/build/deps/duckdb NO_DEFAULT_PATH REQUIRED)
add_library(duckdb_headers INTERFACE)
add_library(duckdb::headers ALIAS duckdb_headers)
target_include_directories(duckdb_headers SYSTEM INTERFACE ${DUCKDB_INCLUDE_DIR})
