# SPDX-License-Identifier: Apache-2.0
# gpusonde_bpf(cpu_sampler bpf/cpu_sampler.bpf.c): compiles a kernel program and makes its libbpf skeleton
# header cpu_sampler.skel.h; link gpusonde::bpf_cpu_sampler to include it.
find_program(GPUSONDE_BPF_CLANG NAMES clang-19 clang REQUIRED)
find_program(GPUSONDE_BPFTOOL NAMES bpftool PATHS /usr/sbin REQUIRED)
function(gpusonde_bpf name source)
  set(object ${CMAKE_CURRENT_BINARY_DIR}/${name}.bpf.o)
  set(skeleton ${CMAKE_CURRENT_BINARY_DIR}/${name}.skel.h)
  add_custom_command(
    OUTPUT ${object}
    COMMAND ${GPUSONDE_BPF_CLANG} --target=bpf -mcpu=v3 -g -O2 -Wall -Wextra -Wno-unused-parameter -Werror -I${CMAKE_SOURCE_DIR}/src
            -I/usr/include/${CMAKE_LIBRARY_ARCHITECTURE} -D__TARGET_ARCH_x86 -MD -MF ${object}.d
            -c ${CMAKE_CURRENT_SOURCE_DIR}/${source} -o ${object}
    DEPENDS ${source} DEPFILE ${object}.d VERBATIM)
  add_custom_command(
    OUTPUT ${skeleton}
    COMMAND ${GPUSONDE_BPFTOOL} gen skeleton ${object} name ${name}_bpf > ${skeleton}
    DEPENDS ${object} VERBATIM)
  add_custom_target(bpf_${name}_skeleton DEPENDS ${skeleton})
  add_library(bpf_${name} INTERFACE)
  add_library(gpusonde::bpf_${name} ALIAS bpf_${name})
  add_dependencies(bpf_${name} bpf_${name}_skeleton)
  target_include_directories(bpf_${name} SYSTEM INTERFACE ${CMAKE_CURRENT_BINARY_DIR})
  # Skeletons are C: g++ accepts _Bool in C++, clang does not.
  target_compile_definitions(bpf_${name} INTERFACE $<$<CXX_COMPILER_ID:Clang>:_Bool=bool>)
  target_link_libraries(bpf_${name} INTERFACE PkgConfig::LIBBPF)
endfunction()
