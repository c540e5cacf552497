// SPDX-License-Identifier: Apache-2.0
#include "simgpu/cuda/ptx.h"

#include <cctype>
#include <charconv>

namespace simgpu::cuda {
namespace {

constexpr std::string_view kDirective = "simgpu:";
constexpr std::string_view kDuration = "duration_ns=";
constexpr std::string_view kParameter = "param";

bool IsName(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$' || c == '%';
}

template <class T>
std::optional<T> Number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end == text.data()) return std::nullopt;
  return value;
}

// A comment without its slashes.
void ReadComment(std::string_view comment, KernelTiming& timing) {
  const size_t directive = comment.find(kDirective);
  if (directive == std::string_view::npos) return;
  const size_t at = comment.find(kDuration, directive);
  if (at == std::string_view::npos) return;
  const std::string_view value = comment.substr(at + kDuration.size());
  timing = {};
  if (value.starts_with(kParameter))
    timing.from_parameter = Number<uint32_t>(value.substr(kParameter.size()));
  else
    timing.constant_ns = Number<int64_t>(value);
}

}  // namespace

std::map<std::string, KernelTiming, std::less<>> KernelsOfPtx(std::string_view text) {
  std::map<std::string, KernelTiming, std::less<>> kernels;
  KernelTiming pending;
  size_t at = 0;
  const auto skip_to = [&](std::string_view what) {
    const size_t found = text.find(what, at);
    at = found == std::string_view::npos ? text.size() : found + what.size();
  };
  while (at < text.size()) {
    const std::string_view rest = text.substr(at);
    if (rest.starts_with("//")) {
      const size_t begin = at;
      skip_to("\n");
      ReadComment(text.substr(begin, at - begin), pending);
    } else if (rest.starts_with("/*")) {
      skip_to("*/");
    } else if (rest.starts_with(".entry")) {
      at += std::string_view(".entry").size();
      while (at < text.size() && std::isspace(static_cast<unsigned char>(text[at])) != 0) ++at;
      const size_t begin = at;
      while (at < text.size() && IsName(text[at])) ++at;
      if (at > begin) kernels.emplace(text.substr(begin, at - begin), pending);
      pending = {};
    } else {
      ++at;
    }
  }
  return kernels;
}

}  // namespace simgpu::cuda
