// SPDX-License-Identifier: Apache-2.0
#include "exporters/sample_profile.h"

#include "base/time.h"

namespace gpusonde::exporters {

model::Profile SampleProfile() {
  using enum model::FrameKind;
  model::Profile profile;
  profile.start_ns = 1'763'687'000 * kNanosPerSecond;
  profile.end_ns = profile.start_ns + 2 * kNanosPerSecond;
  profile.sampling_hz = 100;
  profile.binaries = {
      {.name = "train", .path = "/opt/train", .build_id = "ab12cd34"},
      {.name = "libz.so.1", .path = "/usr/lib/libz.so.1", .build_id = ""},
  };
  profile.functions = {
      {.name = "main", .system_name = "main", .file = "train.cpp", .line = 10},
      {.name = "load_batch(int)", .system_name = "_Z10load_batchi", .file = "train.cpp", .line = 20},
      {.name = "copy_bytes", .system_name = "_ZL10copy_bytesv", .file = "train.cpp", .line = 40},
      {.name = "inflate", .system_name = "inflate"},
      {.name = "vfs_read", .system_name = "vfs_read"},
      {.name = "jit::spin", .system_name = "jit::spin"},
      {.name = "a;b\nc\xFF", .system_name = "a;b\nc\xFF"},
  };
  profile.locations = {
      {.kind = kNative, .binary = 0, .address = 0x1010, .lines = {{0, 12}}},
      {.kind = kNative, .binary = 0, .address = 0x1050, .lines = {{2, 41}, {1, 22}}},
      {.kind = kNative, .binary = 1, .address = 0x2345, .lines = {{3, 0}}},
      {.kind = kNative, .binary = 1, .address = 0x9999},
      {.kind = kKernel, .address = 0x100, .lines = {{4, 0}}},
      {.kind = kJit, .address = 0x7F0000001000, .lines = {{5, 0}}},
      {.kind = kUnknown, .address = 0xDEAD},
      {.kind = kNative, .binary = 0, .address = 0x1090, .lines = {{6, 0}}},
  };
  profile.stacks = {{2, 1, 0}, {4, 2, 0}, {3, 0}, {5, 0}, {6}, {7, 0}};
  profile.threads = {
      {.process = {1, 1}, .pid = 411, .tid = 411, .process_name = "train", .name = "train"},
      {.process = {1, 1}, .pid = 411, .tid = 412, .process_name = "train", .name = "loader"},
      {.process = {2, 2}, .pid = 500, .tid = 500, .process_name = "train", .name = "train"},
  };
  const auto add = [&profile](int32_t stack, int32_t thread, int64_t count) {
    profile.samples.push_back(
        {.stack = stack, .thread = thread, .count = count, .weight_ns = count * 10 * kNanosPerMilli});
  };
  add(0, 1, 20);
  add(1, 1, 10);
  add(2, 0, 8);
  add(3, 0, 6);
  add(4, 0, 1);
  add(5, 2, 5);
  add(0, 2, 10);
  return profile;
}

}  // namespace gpusonde::exporters
