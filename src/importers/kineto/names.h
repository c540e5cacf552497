// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "importers/event.h"

// The vocabulary of Kineto's traces, in the spellings of all its versions.
namespace gpusonde::importers::kineto {

enum class Category : uint8_t {
  kOther,
  kKernel,
  kMemcpy,
  kMemset,
  kApi,
  kAnnotation,
  // Read only in detail.
  kOperator,
  kPython,
  kSync,
  kInstant  // allocations are among them
};

// Which events are read.
enum class Reading : uint8_t {
  kForAnalysis,
  kAll,      // in detail
  kGpuWork,  // in detail, but only what devices did (OpenOptions::gpu_only)
};

// Whether such events are only counted.
constexpr bool IsOnlyCounted(Category category, Reading reading) {
  if (category == Category::kOther) return true;
  if (reading == Reading::kGpuWork) return category > Category::kMemset && category != Category::kSync;
  return reading == Reading::kForAnalysis && category > Category::kAnnotation;
}

// The "cat" of an event: "kernel" and "Kernel", "gpu_memcpy" and "Memcpy", …, in any case, with blanks or
// hyphens between words; of several, separated by commas, the first that is known.
Category CategoryOf(std::string_view category);

// What JSON allows between its tokens (RFC 8259, section 2).
inline bool IsBlank(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

// Whether anything in the "args" of such events is read.
inline bool HasArguments(Category category) {
  return category != Category::kOther && category != Category::kAnnotation &&
         category != Category::kOperator && category != Category::kPython;
}

// The kind of a copy or set, from its name: "Memcpy HtoD (Pageable -> Device)", "Memset (Device)", XLA's
// "MemcpyH2D", roctracer's "CopyHostToDevice", Level Zero's "zeCommandListAppendMemoryCopy(M2D)".
void DescribeMemory(std::string_view name, GpuEvent& event);

// The value of a key, which ends with a colon, in what XLA's profiler says of kernels and copies: "regs:32 …
// grid:128,1,1 block:256,1,1 …", "kind_src:pinned kind_dst:device size:4096 …"; empty if it isn't there.
std::string_view XlaDetail(std::string_view details, std::string_view key);

// Size and memory of a copy, from such a description.
void DescribeXlaCopy(std::string_view details, GpuEvent& event);

// Whether it is the name of a call of the CUDA or HIP runtime or driver: "cuLaunchKernel", "hipMemcpyAsync".
bool IsApiName(std::string_view name);

// The kind of a wait, from its name: "Stream Sync", "Stream Wait Event", …
SyncKind SyncKindOf(std::string_view name);

// The bytes of an element of a tensor, by PyTorch's name of its type: "Float", "BFloat16"; 0 if unknown.
int64_t ElementBytes(std::string_view type);

// The JSON number of a correlation; kNoCorrelation for anything else.
int64_t ReadCorrelation(std::string_view number);

// The number of a process, thread or stream: a JSON number, or the last one in a text such as "Stream 7", as
// converters of other traces write. Empty for anything else.
std::optional<int64_t> TrackNumber(std::string_view token);

// Whether a key, whose text begins at `key` and ends with a quote, is this one. Reads as many bytes as the
// name and its quote have, also where the key is shorter: simdjson's texts have 64 bytes of padding.
// (Comparing a constant number of bytes is a few instructions; strncmp took 13 % of a whole run.)
template <size_t kSize>
bool KeyIs(const char* key, const char (&name)[kSize]) {
  static_assert(kSize < 64);
  return std::memcmp(key, name, kSize - 1) == 0 && key[kSize - 1] == '"';
}

// The text between the quotes of a JSON string, with its escapes; "" for anything else.
std::string_view Unquote(std::string_view token);

// Appends the text with its escapes replaced (RFC 8259, section 7); invalid ones stay as they are, and half
// of a surrogate pair becomes U+FFFD.
void Unescape(std::string_view text, std::string& out);

// JSON whose strings have control characters as they are, which it forbids, with escapes in their place.
std::string EscapeControls(std::string_view json);

}  // namespace gpusonde::importers::kineto
