/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA runtime and driver calls that submit work to a device, by their CUPTI callback ids. Ids are never
 * reused: an older CUPTI rejects those that it doesn't know, and a newer one only adds ids.
 *
 * Source: CUDA 13.0's cupti_runtime_cbid.h and cupti_driver_cbid.h; cupti_test.cpp compares. Calls that no
 * longer exist in CUDA 12 (cudaLaunch, cuLaunchGrid, the cu64 and first-version copies) are left out. The
 * suffixes are CUPTI's: the version that introduced the call, ptds and ptsz for the per-thread default
 * stream. */
#pragma once

/* X(name, id): the calls that copy nodes into another graph. While one runs, CUPTI reports each copy twice,
 * as created and then as cloned, and nodes of the driver's own as created. */
#define GPUSONDE_CUPTI_DRIVER_CLONING_CALLS(X) \
  X(cuGraphInstantiate, 513)                   \
  X(cuGraphClone, 523)                         \
  X(cuGraphAddChildGraphNode, 525)             \
  X(cuGraphInstantiate_v2, 578)                \
  X(cuGraphInstantiateWithFlags, 643)          \
  X(cuGraphInstantiateWithParams, 656)         \
  X(cuGraphInstantiateWithParams_ptsz, 657)

/* X(name, id, what) with what LAUNCH, GRAPH_LAUNCH or COPY (copies and sets). */
#define GPUSONDE_CUPTI_RUNTIME_CALLS(X)                        \
  X(cudaLaunchKernel_v7000, 211, LAUNCH)                       \
  X(cudaLaunchKernel_ptsz_v7000, 214, LAUNCH)                  \
  X(cudaLaunchCooperativeKernel_v9000, 269, LAUNCH)            \
  X(cudaLaunchCooperativeKernel_ptsz_v9000, 270, LAUNCH)       \
  X(cudaLaunchCooperativeKernelMultiDevice_v9000, 272, LAUNCH) \
  X(cudaLaunchKernelExC_v11060, 430, LAUNCH)                   \
  X(cudaLaunchKernelExC_ptsz_v11060, 431, LAUNCH)              \
  X(__cudaLaunchKernel_v13000, 505, LAUNCH)                    \
  X(__cudaLaunchKernel_ptsz_v13000, 506, LAUNCH)               \
  X(cudaGraphLaunch_v10000, 311, GRAPH_LAUNCH)                 \
  X(cudaGraphLaunch_ptsz_v10000, 312, GRAPH_LAUNCH)            \
  X(cudaMemcpy_v3020, 31, COPY)                                \
  X(cudaMemcpy2D_v3020, 32, COPY)                              \
  X(cudaMemcpyToArray_v3020, 33, COPY)                         \
  X(cudaMemcpy2DToArray_v3020, 34, COPY)                       \
  X(cudaMemcpyFromArray_v3020, 35, COPY)                       \
  X(cudaMemcpy2DFromArray_v3020, 36, COPY)                     \
  X(cudaMemcpyArrayToArray_v3020, 37, COPY)                    \
  X(cudaMemcpy2DArrayToArray_v3020, 38, COPY)                  \
  X(cudaMemcpyToSymbol_v3020, 39, COPY)                        \
  X(cudaMemcpyFromSymbol_v3020, 40, COPY)                      \
  X(cudaMemcpyAsync_v3020, 41, COPY)                           \
  X(cudaMemcpyToArrayAsync_v3020, 42, COPY)                    \
  X(cudaMemcpyFromArrayAsync_v3020, 43, COPY)                  \
  X(cudaMemcpy2DAsync_v3020, 44, COPY)                         \
  X(cudaMemcpy2DToArrayAsync_v3020, 45, COPY)                  \
  X(cudaMemcpy2DFromArrayAsync_v3020, 46, COPY)                \
  X(cudaMemcpyToSymbolAsync_v3020, 47, COPY)                   \
  X(cudaMemcpyFromSymbolAsync_v3020, 48, COPY)                 \
  X(cudaMemset_v3020, 49, COPY)                                \
  X(cudaMemset2D_v3020, 50, COPY)                              \
  X(cudaMemsetAsync_v3020, 51, COPY)                           \
  X(cudaMemset2DAsync_v3020, 52, COPY)                         \
  X(cudaMemset3D_v3020, 142, COPY)                             \
  X(cudaMemset3DAsync_v3020, 143, COPY)                        \
  X(cudaMemcpy3D_v3020, 144, COPY)                             \
  X(cudaMemcpy3DAsync_v3020, 145, COPY)                        \
  X(cudaMemcpyPeer_v4000, 160, COPY)                           \
  X(cudaMemcpyPeerAsync_v4000, 161, COPY)                      \
  X(cudaMemcpy3DPeer_v4000, 162, COPY)                         \
  X(cudaMemcpy3DPeerAsync_v4000, 163, COPY)                    \
  X(cudaMemcpy_ptds_v7000, 215, COPY)                          \
  X(cudaMemcpy2D_ptds_v7000, 216, COPY)                        \
  X(cudaMemcpyToArray_ptds_v7000, 217, COPY)                   \
  X(cudaMemcpy2DToArray_ptds_v7000, 218, COPY)                 \
  X(cudaMemcpyFromArray_ptds_v7000, 219, COPY)                 \
  X(cudaMemcpy2DFromArray_ptds_v7000, 220, COPY)               \
  X(cudaMemcpyArrayToArray_ptds_v7000, 221, COPY)              \
  X(cudaMemcpy2DArrayToArray_ptds_v7000, 222, COPY)            \
  X(cudaMemcpyToSymbol_ptds_v7000, 223, COPY)                  \
  X(cudaMemcpyFromSymbol_ptds_v7000, 224, COPY)                \
  X(cudaMemcpyAsync_ptsz_v7000, 225, COPY)                     \
  X(cudaMemcpyToArrayAsync_ptsz_v7000, 226, COPY)              \
  X(cudaMemcpyFromArrayAsync_ptsz_v7000, 227, COPY)            \
  X(cudaMemcpy2DAsync_ptsz_v7000, 228, COPY)                   \
  X(cudaMemcpy2DToArrayAsync_ptsz_v7000, 229, COPY)            \
  X(cudaMemcpy2DFromArrayAsync_ptsz_v7000, 230, COPY)          \
  X(cudaMemcpyToSymbolAsync_ptsz_v7000, 231, COPY)             \
  X(cudaMemcpyFromSymbolAsync_ptsz_v7000, 232, COPY)           \
  X(cudaMemset_ptds_v7000, 233, COPY)                          \
  X(cudaMemset2D_ptds_v7000, 234, COPY)                        \
  X(cudaMemsetAsync_ptsz_v7000, 235, COPY)                     \
  X(cudaMemset2DAsync_ptsz_v7000, 236, COPY)                   \
  X(cudaMemset3D_ptds_v7000, 243, COPY)                        \
  X(cudaMemset3DAsync_ptsz_v7000, 244, COPY)                   \
  X(cudaMemcpy3D_ptds_v7000, 245, COPY)                        \
  X(cudaMemcpy3DAsync_ptsz_v7000, 246, COPY)                   \
  X(cudaMemcpy3DPeer_ptds_v7000, 249, COPY)                    \
  X(cudaMemcpy3DPeerAsync_ptsz_v7000, 250, COPY)               \
  X(cudaMemcpyBatchAsync_v12080, 482, COPY)                    \
  X(cudaMemcpyBatchAsync_ptsz_v12080, 483, COPY)               \
  X(cudaMemcpy3DBatchAsync_v12080, 484, COPY)                  \
  X(cudaMemcpy3DBatchAsync_ptsz_v12080, 485, COPY)             \
  X(cudaMemcpyBatchAsync_v13000, 509, COPY)                    \
  X(cudaMemcpyBatchAsync_ptsz_v13000, 510, COPY)               \
  X(cudaMemcpy3DBatchAsync_v13000, 511, COPY)                  \
  X(cudaMemcpy3DBatchAsync_ptsz_v13000, 512, COPY)

#define GPUSONDE_CUPTI_DRIVER_CALLS(X)                 \
  X(cuLaunchKernel, 307, LAUNCH)                       \
  X(cuLaunchKernel_ptsz, 442, LAUNCH)                  \
  X(cuLaunchCooperativeKernel, 477, LAUNCH)            \
  X(cuLaunchCooperativeKernel_ptsz, 478, LAUNCH)       \
  X(cuLaunchCooperativeKernelMultiDevice, 480, LAUNCH) \
  X(cuLaunchKernelEx, 652, LAUNCH)                     \
  X(cuLaunchKernelEx_ptsz, 653, LAUNCH)                \
  X(cuGraphLaunch, 514, GRAPH_LAUNCH)                  \
  X(cuGraphLaunch_ptsz, 515, GRAPH_LAUNCH)             \
  X(cuMemsetD8Async, 216, COPY)                        \
  X(cuMemsetD16Async, 218, COPY)                       \
  X(cuMemsetD32Async, 220, COPY)                       \
  X(cuMemsetD2D8Async, 222, COPY)                      \
  X(cuMemsetD2D16Async, 224, COPY)                     \
  X(cuMemsetD2D32Async, 226, COPY)                     \
  X(cuMemsetD8_v2, 249, COPY)                          \
  X(cuMemsetD16_v2, 250, COPY)                         \
  X(cuMemsetD32_v2, 251, COPY)                         \
  X(cuMemsetD2D8_v2, 252, COPY)                        \
  X(cuMemsetD2D16_v2, 253, COPY)                       \
  X(cuMemsetD2D32_v2, 254, COPY)                       \
  X(cuMemcpyHtoD_v2, 276, COPY)                        \
  X(cuMemcpyHtoDAsync_v2, 277, COPY)                   \
  X(cuMemcpyDtoH_v2, 278, COPY)                        \
  X(cuMemcpyDtoHAsync_v2, 279, COPY)                   \
  X(cuMemcpyDtoD_v2, 280, COPY)                        \
  X(cuMemcpyDtoDAsync_v2, 281, COPY)                   \
  X(cuMemcpyAtoH_v2, 282, COPY)                        \
  X(cuMemcpyAtoHAsync_v2, 283, COPY)                   \
  X(cuMemcpyAtoD_v2, 284, COPY)                        \
  X(cuMemcpyDtoA_v2, 285, COPY)                        \
  X(cuMemcpyAtoA_v2, 286, COPY)                        \
  X(cuMemcpy2D_v2, 287, COPY)                          \
  X(cuMemcpy2DUnaligned_v2, 288, COPY)                 \
  X(cuMemcpy2DAsync_v2, 289, COPY)                     \
  X(cuMemcpy3D_v2, 290, COPY)                          \
  X(cuMemcpy3DAsync_v2, 291, COPY)                     \
  X(cuMemcpyHtoA_v2, 292, COPY)                        \
  X(cuMemcpyHtoAAsync_v2, 293, COPY)                   \
  X(cuMemcpy, 305, COPY)                               \
  X(cuMemcpyAsync, 306, COPY)                          \
  X(cuMemcpyPeer, 318, COPY)                           \
  X(cuMemcpyPeerAsync, 319, COPY)                      \
  X(cuMemcpy3DPeer, 320, COPY)                         \
  X(cuMemcpy3DPeerAsync, 321, COPY)                    \
  X(cuMemcpyHtoD_v2_ptds, 397, COPY)                   \
  X(cuMemcpyDtoH_v2_ptds, 398, COPY)                   \
  X(cuMemcpyDtoD_v2_ptds, 399, COPY)                   \
  X(cuMemcpyDtoA_v2_ptds, 400, COPY)                   \
  X(cuMemcpyAtoD_v2_ptds, 401, COPY)                   \
  X(cuMemcpyHtoA_v2_ptds, 402, COPY)                   \
  X(cuMemcpyAtoH_v2_ptds, 403, COPY)                   \
  X(cuMemcpyAtoA_v2_ptds, 404, COPY)                   \
  X(cuMemcpy2D_v2_ptds, 405, COPY)                     \
  X(cuMemcpy2DUnaligned_v2_ptds, 406, COPY)            \
  X(cuMemcpy3D_v2_ptds, 407, COPY)                     \
  X(cuMemcpy_ptds, 408, COPY)                          \
  X(cuMemcpyPeer_ptds, 409, COPY)                      \
  X(cuMemcpy3DPeer_ptds, 410, COPY)                    \
  X(cuMemsetD8_v2_ptds, 411, COPY)                     \
  X(cuMemsetD16_v2_ptds, 412, COPY)                    \
  X(cuMemsetD32_v2_ptds, 413, COPY)                    \
  X(cuMemsetD2D8_v2_ptds, 414, COPY)                   \
  X(cuMemsetD2D16_v2_ptds, 415, COPY)                  \
  X(cuMemsetD2D32_v2_ptds, 416, COPY)                  \
  X(cuMemcpyAsync_ptsz, 418, COPY)                     \
  X(cuMemcpyHtoAAsync_v2_ptsz, 419, COPY)              \
  X(cuMemcpyAtoHAsync_v2_ptsz, 420, COPY)              \
  X(cuMemcpyHtoDAsync_v2_ptsz, 421, COPY)              \
  X(cuMemcpyDtoHAsync_v2_ptsz, 422, COPY)              \
  X(cuMemcpyDtoDAsync_v2_ptsz, 423, COPY)              \
  X(cuMemcpy2DAsync_v2_ptsz, 424, COPY)                \
  X(cuMemcpy3DAsync_v2_ptsz, 425, COPY)                \
  X(cuMemcpyPeerAsync_ptsz, 426, COPY)                 \
  X(cuMemcpy3DPeerAsync_ptsz, 427, COPY)               \
  X(cuMemsetD8Async_ptsz, 428, COPY)                   \
  X(cuMemsetD16Async_ptsz, 429, COPY)                  \
  X(cuMemsetD32Async_ptsz, 430, COPY)                  \
  X(cuMemsetD2D8Async_ptsz, 431, COPY)                 \
  X(cuMemsetD2D16Async_ptsz, 432, COPY)                \
  X(cuMemsetD2D32Async_ptsz, 433, COPY)                \
  X(cuMemcpyBatchAsync, 776, COPY)                     \
  X(cuMemcpyBatchAsync_ptsz, 777, COPY)                \
  X(cuMemcpy3DBatchAsync, 778, COPY)                   \
  X(cuMemcpy3DBatchAsync_ptsz, 779, COPY)              \
  X(cuMemcpyBatchAsync_v2, 796, COPY)                  \
  X(cuMemcpyBatchAsync_v2_ptsz, 797, COPY)             \
  X(cuMemcpy3DBatchAsync_v2, 798, COPY)                \
  X(cuMemcpy3DBatchAsync_v2_ptsz, 799, COPY)
