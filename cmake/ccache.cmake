# SPDX-License-Identifier: Apache-2.0
# Compiles through ccache if it is installed and no other launcher is set: a second build in another folder, or
# after `make clean`, takes seconds. CCACHE_DISABLE=1 in the environment builds without it.
find_program(GPUSONDE_CCACHE ccache)
if(GPUSONDE_CCACHE AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
  # By the compiler's list of the files that it read, so that nothing is preprocessed once more to be looked up; and precompiled
  # headers are of use only with this sloppiness (their macros have the command line's values, and none is the time).
  set(CMAKE_C_COMPILER_LAUNCHER env CCACHE_DEPEND=1 CCACHE_SLOPPINESS=pch_defines,time_macros ${GPUSONDE_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_C_COMPILER_LAUNCHER})
endif()
