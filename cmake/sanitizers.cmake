# SPDX-License-Identifier: Apache-2.0
# GPUSONDE_SANITIZE=address,undefined | thread: independent of the build type, for the whole tree,
# because code with and without a sanitizer doesn't mix.
set(GPUSONDE_SANITIZE "" CACHE STRING "Sanitizers, comma separated (address,undefined or thread)")
if(GPUSONDE_SANITIZE)
  add_compile_options(-fsanitize=${GPUSONDE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${GPUSONDE_SANITIZE})
endif()
if(GPUSONDE_SANITIZE STREQUAL "thread" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC warns that the sanitizer doesn't see fences. Boost.Asio has some, our code has none.
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wno-tsan>)
endif()
option(GPUSONDE_TESTS "Build the tests" ON)
option(GPUSONDE_BENCH "Build the benchmarks" OFF)
option(GPUSONDE_FUZZ "Build the fuzzers (clang only)" OFF)
if(GPUSONDE_FUZZ)
  # Instruments all code, so that a fuzzer sees what an input reaches.
  add_compile_options(-fsanitize=fuzzer-no-link)
  add_link_options(-fsanitize=fuzzer-no-link)
endif()
