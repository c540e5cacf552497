# SPDX-License-Identifier: Apache-2.0
# All external packages. tools/setup installs missing ones.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(Boost 1.81 REQUIRED)
find_package(OpenSSL 3 REQUIRED)
find_package(Protobuf REQUIRED)
find_package(ZLIB REQUIRED)
pkg_check_modules(LIBBPF REQUIRED IMPORTED_TARGET libbpf)
pkg_check_modules(LIBELF REQUIRED IMPORTED_TARGET libelf)
pkg_check_modules(LIBDW REQUIRED IMPORTED_TARGET libdw)
pkg_check_modules(MPI REQUIRED IMPORTED_TARGET ompi-c)
pkg_check_modules(ISAL REQUIRED IMPORTED_TARGET libisal)
pkg_check_modules(SIMDJSON REQUIRED IMPORTED_TARGET simdjson)
pkg_check_modules(SQLITE3 REQUIRED IMPORTED_TARGET sqlite3)
pkg_check_modules(NGHTTP2 REQUIRED IMPORTED_TARGET libnghttp2)
pkg_check_modules(SODIUM REQUIRED IMPORTED_TARGET libsodium)
pkg_check_modules(ZSTD REQUIRED IMPORTED_TARGET libzstd)
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)
find_library(LIBIBERTY libiberty.a REQUIRED)

# Links the static library of a target instead of the shared one, where it is installed. A program loads shared libraries and
# looks up most of their symbols at every start: 9 of them took 3.3 of the 7.5 ms of CPU time of `gpusonde --version`.
# Libraries that other libraries load too stay shared, and so do elfutils' (LGPL).
function(gpusonde_link_statically target)
  foreach(property IMPORTED_LOCATION IMPORTED_LOCATION_NONE IMPORTED_LOCATION_RELEASE INTERFACE_LINK_LIBRARIES)
    get_target_property(files ${target} ${property})
    if(NOT files)
      continue()
    endif()
    set(chosen)
    foreach(file ${files})
      string(REGEX REPLACE "\\.so[0-9.]*$" ".a" static "${file}")
      if(IS_ABSOLUTE "${static}" AND EXISTS "${static}")
        set(file ${static})
      endif()
      list(APPEND chosen ${file})
    endforeach()
    set_target_properties(${target} PROPERTIES ${property} "${chosen}")
  endforeach()
endfunction()
foreach(target OpenSSL::Crypto OpenSSL::SSL PkgConfig::LIBBPF PkgConfig::NGHTTP2 PkgConfig::SODIUM PkgConfig::SQLITE3
        PkgConfig::XXHASH PkgConfig::ZSTD protobuf::libprotobuf-lite)
  gpusonde_link_statically(${target})
endforeach()
# What the static libraries need themselves.
target_link_libraries(PkgConfig::LIBBPF INTERFACE PkgConfig::LIBELF ZLIB::ZLIB)
target_link_libraries(PkgConfig::SQLITE3 INTERFACE ZLIB::ZLIB ${CMAKE_DL_LIBS})

if(GPUSONDE_TESTS)
  find_package(GTest REQUIRED)
  include(GoogleTest)
endif()
if(GPUSONDE_BENCH)
  pkg_check_modules(GMP REQUIRED IMPORTED_TARGET gmp)
  find_package(benchmark REQUIRED)
endif()

# DuckDB: the system's if installed, else the one from npm (`make setup`, tools/duckdb). The library is loaded at run
# time, so the build only needs the header.
find_path(DUCKDB_INCLUDE_DIR duckdb.h
  PATHS ${CMAKE_SOURCE_DIR}/build/deps/duckdb REQUIRED)
find_file(DUCKDB_LIBRARY_FILE libduckdb.so
  PATHS /usr/lib /usr/local/lib /usr/lib/x86_64-linux-gnu ${CMAKE_SOURCE_DIR}/build/deps/duckdb NO_DEFAULT_PATH REQUIRED)
add_library(duckdb_headers INTERFACE)
add_library(duckdb::headers ALIAS duckdb_headers)
target_include_directories(duckdb_headers SYSTEM INTERFACE ${DUCKDB_INCLUDE_DIR})
