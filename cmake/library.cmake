# SPDX-License-Identifier: Apache-2.0
# One static library and one test program per folder of src/.

# Most files here are short, and 85 % of their compile time is that of the headers they include; compiled in batches
# they share it. The preset dev compiles each file alone (`make nightly STEPS=alone`), which finds missing includes.
option(GPUSONDE_UNITY "Compile the files of a library or test program in batches" ON)
set(CMAKE_UNITY_BUILD_BATCH_SIZE 20)
if(GPUSONDE_UNITY AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # In a batch GCC treats each file as a header, and warns of types that have members of file-local types.
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage>)
endif()

# GCC collects garbage whenever its memory has doubled, from 128 MiB on, which is a fifteenth of a batch's compile time. If
# it begins at 1 GiB, or at a quarter of this machine's memory divided by its CPUs, hardly any batch needs a collection, for
# a fifth more memory.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  cmake_host_system_information(RESULT memory_mib QUERY TOTAL_PHYSICAL_MEMORY)
  cmake_host_system_information(RESULT cpus QUERY NUMBER_OF_LOGICAL_CORES)
  math(EXPR heap_kib "${memory_mib} * 1024 / 4 / ${cpus}")
  if(heap_kib GREATER 1048576)
    set(heap_kib 1048576)
  endif()
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:--param=ggc-min-heapsize=${heap_kib}>)
endif()

# The code under test is optimised; the tests' own code, half of all code to compile, is not.
set(GPUSONDE_TEST_OPTIONS $<$<CONFIG:RelWithDebInfo>:-O0>)
# Batches of tests load precompiled headers of other libraries that most of them include, which saves a third of a small
# batch's time. None of our headers is among them, as a change of it would compile all tests. Libraries don't use them: that
# would save a twentieth, and with another order of includes GCC inlines differently, with false warnings of overflows in
# std::string.
set(GPUSONDE_PRECOMPILE OFF)
if(GPUSONDE_TESTS AND GPUSONDE_UNITY AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(GPUSONDE_PRECOMPILE ON)
  set(headers algorithm array atomic bit charconv chrono cmath condition_variable cstddef cstdint cstdio cstdlib cstring deque
    expected filesystem fstream functional iterator limits map memory mutex numeric optional random set span stop_token string
    string_view system_error thread tuple type_traits unordered_map unordered_set utility variant vector fmt/format.h
    gtest/gtest.h gmock/gmock.h)
  list(TRANSFORM headers REPLACE "(.+)" "<\\1>")
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/precompiled.cpp CONTENT "")
  add_library(gpusonde_precompiled OBJECT ${CMAKE_BINARY_DIR}/precompiled.cpp)
  target_compile_options(gpusonde_precompiled PRIVATE -fPIE ${GPUSONDE_TEST_OPTIONS})
  target_link_libraries(gpusonde_precompiled PRIVATE GTest::gmock fmt::fmt gpusonde::warnings)
  target_precompile_headers(gpusonde_precompiled PRIVATE ${headers})
endif()

# gpusonde_library(base SOURCES a.cpp … DEPENDS fmt::fmt …): target gpusonde_base, alias gpusonde::base.
# HOT: every event passes through this library, so it is compiled at -O3.
function(gpusonde_library name)
  cmake_parse_arguments(arg "HOT" "" "SOURCES;DEPENDS;PRIVATE_DEPENDS" ${ARGN})
  string(REPLACE "/" "_" target "gpusonde_${name}")
  string(REPLACE "/" "::" alias "gpusonde::${name}")
  if(arg_SOURCES)
    add_library(${target} STATIC ${arg_SOURCES})
    set_target_properties(${target} PROPERTIES UNITY_BUILD ${GPUSONDE_UNITY})
    target_include_directories(${target} PUBLIC ${CMAKE_SOURCE_DIR}/src)
    target_link_libraries(${target} PUBLIC ${arg_DEPENDS} PRIVATE gpusonde::warnings ${arg_PRIVATE_DEPENDS})
    if(arg_HOT)
      target_compile_options(${target} PRIVATE -fno-semantic-interposition)
      if(NOT GPUSONDE_SANITIZE)  # with which GCC 12 warns of fmt at -O3
        target_compile_options(${target} PRIVATE $<$<CONFIG:RelWithDebInfo>:-O3>)
      endif()
    endif()
  else()
    add_library(${target} INTERFACE)
    target_include_directories(${target} INTERFACE ${CMAKE_SOURCE_DIR}/src)
    target_link_libraries(${target} INTERFACE ${arg_DEPENDS})
  endif()
  add_library(${alias} ALIAS ${target})
endfunction()

# gpusonde_test(base SOURCES a_test.cpp … DEPENDS gpusonde::base): program gpusonde_base_test, one ctest entry per TEST.
#   LONG          its tests start before those of other programs, so that no long one is left for the end
#   WAITS         its tests mostly wait, so four of them run in place of one other (ctest counts quarters of CPUs, tools/test)
#   ALONE         patterns (as for --gtest_filter) of tests that measure shares of CPU or of time: nothing runs beside them
#   PROFILES_ALL  patterns of tests that profile the GPU work of all programs: one of them runs at a time
function(gpusonde_test name)
  if(NOT GPUSONDE_TESTS)
    return()
  endif()
  cmake_parse_arguments(arg "LONG;WAITS" "" "SOURCES;DEPENDS;ALONE;PROFILES_ALL" ${ARGN})
  set(timeout_s 300)
  set(properties)
  if(GPUSONDE_SANITIZE STREQUAL "thread")
    set(timeout_s 1800)
    list(APPEND properties ENVIRONMENT "TSAN_OPTIONS=suppressions=${CMAKE_SOURCE_DIR}/tests/tsan.supp")
  endif()
  if(GPUSONDE_SANITIZE MATCHES "address")
    list(APPEND properties ENVIRONMENT "LSAN_OPTIONS=suppressions=${CMAKE_SOURCE_DIR}/tests/lsan.supp")
  endif()
  list(APPEND properties TIMEOUT ${timeout_s})
  if(arg_WAITS)
    list(APPEND properties PROCESSORS 1)
  else()
    list(APPEND properties PROCESSORS 4)
  endif()
  if(arg_LONG)
    list(APPEND properties COST 1)
  endif()
  string(REPLACE "/" "_" target "gpusonde_${name}_test")
  add_executable(${target} ${arg_SOURCES})
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${GPUSONDE_UNITY})
  target_link_libraries(${target} PRIVATE ${arg_DEPENDS} GTest::gmock_main fmt::fmt gpusonde::warnings)
  target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR}/src)
  target_compile_options(${target} PRIVATE ${GPUSONDE_TEST_OPTIONS})
  if(GPUSONDE_PRECOMPILE)
    target_precompile_headers(${target} REUSE_FROM gpusonde_precompiled)
  endif()
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  set(discovery TEST_PREFIX "${name}/" DISCOVERY_TIMEOUT 60 WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  list(JOIN arg_ALONE ":" alone)
  list(JOIN arg_PROFILES_ALL ":" profiles_all)
  if(alone)
    gtest_discover_tests(${target} ${discovery} TEST_FILTER "${alone}" TEST_LIST ${target}_ALONE
      PROPERTIES ${properties} RUN_SERIAL TRUE)
  endif()
  if(profiles_all)
    gtest_discover_tests(${target} ${discovery} TEST_FILTER "${profiles_all}" TEST_LIST ${target}_PROFILES_ALL
      PROPERTIES ${properties} RESOURCE_LOCK gpu_profilers)
  endif()
  if(NOT profiles_all STREQUAL "*")
    gtest_discover_tests(${target} ${discovery} TEST_FILTER "*-${alone}:${profiles_all}" PROPERTIES ${properties})
  endif()
endfunction()
