// SPDX-License-Identifier: Apache-2.0
#include "sources/proc/containers.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cstddef>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "base/fd.h"

namespace gpusonde::proc {
namespace {

constexpr size_t kMaxNameBytes = 253;  // of a pod, the longest of them
constexpr size_t kMaxConfigBytes = size_t{1} << 20;
// A node has at most some hundreds of pods; links of dead containers are removed.
constexpr int kMaxLinks = 10'000;

std::optional<ContainerName> NameInPod(std::string_view id, const std::string& root) {
  const std::string ending = fmt::format("-{}.log", id);
  std::error_code error;
  int links = 0;
  for (std::filesystem::directory_iterator entry(root + "/var/log/containers", error), end;
       !error && entry != end && ++links <= kMaxLinks; entry.increment(error)) {
    const std::string file = entry->path().filename();
    if (!file.ends_with(ending)) continue;
    // None of the three may contain an underscore.
    const std::string_view names = std::string_view(file).substr(0, file.size() - ending.size());
    const size_t first = names.find('_');
    const size_t second = names.find('_', first + 1);
    if (first == std::string_view::npos || second == std::string_view::npos) return std::nullopt;
    return ContainerName{std::string(names.substr(second + 1)), std::string(names.substr(0, first)),
                         std::string(names.substr(first + 1, second - first - 1))};
  }
  return std::nullopt;
}

std::optional<ContainerName> NameInDocker(std::string_view id, const std::string& root) {
  const std::string path = fmt::format("{}/var/lib/docker/containers/{}/config.v2.json", root, id);
  // Opening a pipe would wait for its writer.
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  const Result<std::string> text = ReadFile(path, kMaxConfigBytes);
  if (!text.has_value()) return std::nullopt;
  const auto config = nlohmann::json::parse(*text, nullptr, /*allow_exceptions=*/false);
  const auto name = config.is_object() ? config.find("Name") : config.end();
  if (name == config.end() || !name->is_string()) return std::nullopt;
  std::string text_of_name = name->get<std::string>();
  if (text_of_name.starts_with('/')) text_of_name.erase(0, 1);
  return ContainerName{text_of_name.substr(0, kMaxNameBytes), "", ""};
}

}  // namespace

std::optional<ContainerName> FindContainerName(std::string_view id, const std::string& root) {
  if (std::optional<ContainerName> name = NameInPod(id, root); name.has_value()) return name;
  return NameInDocker(id, root);
}

}  // namespace gpusonde::proc
