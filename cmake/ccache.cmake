# SPDX-License-Identifier: Apache-2.0
# Compiles through ccache if it is installed and no other launcher is set: a second build in another folder, or
# after `make clean`, takes seconds. CCACHE_DISABLE=1 in the environment builds without it.
find_program(GPUSONDE_CCACHE ccache)
if(GPUSONDE_CCACHE AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
  # CCACHE_DEPEND looks results up by the compiler's list of the files that it read, without preprocessing once more.
  # Precompiled headers are cached only with this sloppiness, which is safe: their macros have the command line's values,
  # and none is the time.
  set(CMAKE_C_COMPILER_LAUNCHER env CCACHE_DEPEND=1 CCACHE_SLOPPINESS=pch_defines,time_macros ${GPUSONDE_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_C_COMPILER_LAUNCHER})
endif()
