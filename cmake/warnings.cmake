# SPDX-License-Identifier: Apache-2.0
# Warnings reach a target by linking gpusonde::warnings, never directory-wide: generated code doesn't link it.
add_library(gpusonde_warnings INTERFACE)
add_library(gpusonde::warnings ALIAS gpusonde_warnings)
target_compile_options(gpusonde_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wnull-dereference -Wno-missing-field-initializers
  $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor -Wold-style-cast -Woverloaded-virtual>)
option(GPUSONDE_WERROR "Treat warnings as errors" ON)
if(GPUSONDE_WERROR)
  target_compile_options(gpusonde_warnings INTERFACE -Werror)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12 reports false positives of these three inside libstdc++ when it inlines at -O2.
  target_compile_options(gpusonde_warnings INTERFACE -Wno-null-dereference -Wno-restrict -Wno-maybe-uninitialized)
  if(GPUSONDE_SANITIZE)
    # And of this one in coroutines of Boost.Asio, whose allocation it inlines but not their release.
    target_compile_options(gpusonde_warnings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-mismatched-new-delete>)
  endif()
  if(GPUSONDE_SANITIZE STREQUAL "thread")
    # And of these where it inlines vector::insert around instrumented accesses.
    target_compile_options(gpusonde_warnings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-array-bounds>
                           $<$<COMPILE_LANGUAGE:CXX>:-Wno-stringop-overread>)
  endif()
endif()
