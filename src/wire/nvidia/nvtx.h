/* SPDX-License-Identifier: Apache-2.0 */
/* The part of NVTX's ABI with which a tool receives a program's ranges, declared by us.
 *
 * A program that uses NVTX loads the library named in NVTX_INJECTION64_PATH at its first NVTX call and calls
 * its InitializeInjectionNvtx2 with a function that returns tables; the tool writes pointers to its own
 * functions there. Every shared object that contains NVTX 3 (a header-only library) does so separately.
 *
 * Source: CUDA 13.0's nvtx3/nvToolsExt.h, nvtxDetail/nvtxTypes.h, nvtxDetail/nvtxInit.h. cupti_test.cpp
 * compares. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* NvtxExportTableID */
enum { GPUSONDE_NVTX_TABLE_CALLBACKS = 1 };
/* NvtxCallbackModule */
enum { GPUSONDE_NVTX_MODULE_CORE = 1, GPUSONDE_NVTX_MODULE_CORE2 = 5 };

/* NvtxCallbackIdCore */
enum {
  GPUSONDE_NVTX_CORE_RANGE_START_EX = 4,
  GPUSONDE_NVTX_CORE_RANGE_START_A = 5,
  GPUSONDE_NVTX_CORE_RANGE_END = 7,
  GPUSONDE_NVTX_CORE_RANGE_PUSH_EX = 8,
  GPUSONDE_NVTX_CORE_RANGE_PUSH_A = 9,
  GPUSONDE_NVTX_CORE_RANGE_PUSH_W = 10,
  GPUSONDE_NVTX_CORE_RANGE_POP = 11
};
/* NvtxCallbackIdCore2 */
enum {
  GPUSONDE_NVTX_CORE2_DOMAIN_RANGE_START_EX = 2,
  GPUSONDE_NVTX_CORE2_DOMAIN_RANGE_END = 3,
  GPUSONDE_NVTX_CORE2_DOMAIN_RANGE_PUSH_EX = 4,
  GPUSONDE_NVTX_CORE2_DOMAIN_RANGE_POP = 5,
  GPUSONDE_NVTX_CORE2_DOMAIN_REGISTER_STRING_A = 10,
  GPUSONDE_NVTX_CORE2_DOMAIN_CREATE_A = 12
};

/* nvtxMessageType_t */
enum { GPUSONDE_NVTX_MESSAGE_ASCII = 1, GPUSONDE_NVTX_MESSAGE_REGISTERED = 3 };

/* nvtxEventAttributes_v2; registered handles since version 2 */
struct gpusonde_nvtx_attributes {
  uint16_t version;
  uint16_t size;
  uint32_t category;
  int32_t color_type;
  uint32_t color;
  int32_t payload_type;
  int32_t reserved0;
  uint64_t payload;
  int32_t message_type;
  const void* message; /* a zero-terminated text, or what DomainRegisterString returned */
};

typedef void (*gpusonde_nvtx_function)(void);

/* NvtxExportTableCallbacks */
struct gpusonde_nvtx_callbacks {
  size_t struct_size;
  /* Returns an array of addresses of function pointers, indexed by callback id; 0 on failure. */
  int (*get_module_function_table)(uint32_t module, gpusonde_nvtx_function*** table, unsigned* entries);
};

/* NvtxGetExportTableFunc_t */
typedef const void* gpusonde_nvtx_get_export_table(uint32_t table_id);
