# SPDX-License-Identifier: Apache-2.0
# Compiles through ccache if it is installed and no other launcher is set: a second build in another folder, or
# after `make clean`, takes seconds. CCACHE_DISABLE=1 in the environment builds without it.
find_program(GPUSONDE_CCACHE ccache)
if(GPUSONDE_CCACHE AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_C_COMPILER_LAUNCHER ${GPUSONDE_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${GPUSONDE_CCACHE})
endif()
