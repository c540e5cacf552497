// SPDX-License-Identifier: Apache-2.0
#include "admission/pod_patch.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>
#include <vector>

#include "base/json_writer.h"
#include "base/printable.h"

namespace gpusonde::admission {
namespace {

using nlohmann::json;

constexpr std::string_view kApiVersion = "admission.k8s.io/v1";
// The API server cuts off warnings of more than 256 characters.
constexpr size_t kMaxWarning = 250;

std::unexpected<Error> Malformed(std::string message) {
  return Fail(ErrorCode::kInvalidArgument, std::move(message));
}

// A member of an object; null when there is none or it is null.
const json* Find(const json& object, std::string_view key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

// A member that is a text; empty when there is none.
std::string_view Text(const json& object, std::string_view key) {
  const json* const value = Find(object, key);
  return value != nullptr && value->is_string() ? std::string_view(value->get_ref<const std::string&>())
                                                : std::string_view();
}

// A member that is an array; null when there is none.
Result<const json*> Array(const json& object, std::string_view key) {
  const json* const value = Find(object, key);
  if (value != nullptr && !value->is_array()) return Malformed(fmt::format("the pod's {} is no array", key));
  return value;
}

// Whether an array has an object whose member `key` is this text.
bool Has(const json* array, std::string_view key, std::string_view text) {
  return array != nullptr &&
         std::ranges::any_of(*array, [&](const json& element) { return Text(element, key) == text; });
}

bool IsGpu(std::string_view resource) {
  return resource == "nvidia.com/gpu" || resource.starts_with("nvidia.com/gpu.") ||
         resource.starts_with("nvidia.com/mig-");
}

// By a device plugin's resource, or a claim of dynamic resource allocation, of whatever device that is.
bool AsksForGpu(const json& container) {
  const json* const resources = Find(container, "resources");
  if (resources == nullptr) return false;
  if (const json* claims = Find(*resources, "claims"); claims != nullptr && !claims->empty()) return true;
  const json* const limits = Find(*resources, "limits");
  if (limits == nullptr || !limits->is_object()) return false;
  for (const auto& [name, amount] : limits->items())
    if (IsGpu(name) && amount != "0" && amount != 0) return true;
  return false;
}

// A JSON Patch that only adds.
class Patch {
 public:
  Patch() { json_.BeginArray(); }

  // Appends to the array at this path, which `array` is; null: there is none yet.
  void Append(const json* array, const std::string& path, std::span<const std::string> values) {
    if (array == nullptr) {
      BeginAddition(path).BeginArray();
      for (const std::string& value : values) json_.Raw(value);
      json_.EndArray().EndObject();
      return;
    }
    for (const std::string& value : values) BeginAddition(path + "/-").Raw(value).EndObject();
  }

  std::string Take() { return json_.EndArray().Take(); }

 private:
  JsonWriter& BeginAddition(std::string_view path) {
    return json_.BeginObject().Field("op", "add").Field("path", path).Key("value");
  }

  JsonWriter json_;
};

std::string Base64(std::string_view bytes) {
  std::string text(4 * ((bytes.size() + 2) / 3) + 1, '\0');  // it writes a final zero
  const int size =
      EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                      reinterpret_cast<const unsigned char*>(bytes.data()), static_cast<int>(bytes.size()));
  text.resize(static_cast<size_t>(size));
  return text;
}

// What the containers get, as JSON.
struct Additions {
  std::string folder;  // of the library
  std::string variable, nvtx_variable, mount, volume;
};

Additions For(std::string_view library) {
  Additions additions{.folder = std::string(library.substr(0, library.rfind('/')))};
  JsonWriter variable, nvtx_variable, mount, volume;
  variable.BeginObject().Field("name", kVariable).Field("value", library).EndObject();
  nvtx_variable.BeginObject().Field("name", kNvtxVariable).Field("value", library).EndObject();
  mount.BeginObject().Field("name", kVolume).Field("mountPath", additions.folder);
  mount.Field("readOnly", true).EndObject();
  volume.BeginObject().Field("name", kVolume).Key("hostPath").BeginObject();
  volume.Field("path", additions.folder).Field("type", "DirectoryOrCreate").EndObject().EndObject();
  additions.variable = variable.Take();
  additions.nvtx_variable = nvtx_variable.Take();
  additions.mount = mount.Take();
  additions.volume = volume.Take();
  return additions;
}

struct Change {
  std::string patch;  // empty: none
  std::string warning;
  size_t profiled = 0, taken = 0;
};

// Adds to the containers of one kind.
Status AddTo(const json& spec, std::string_view kind, const Additions& additions, Patch& patch,
             Change& change, std::string& taken_names) {
  ASSIGN_OR_RETURN(const json* const containers, Array(spec, kind));
  if (containers == nullptr) return {};
  if (containers->size() > kMaxContainers)
    return Malformed(
        fmt::format("the pod has {} {}; at most {} are supported", containers->size(), kind, kMaxContainers));
  for (size_t i = 0; i < containers->size(); ++i) {
    const json& container = (*containers)[i];
    if (!AsksForGpu(container)) continue;
    ASSIGN_OR_RETURN(const json* const variables, Array(container, "env"));
    ASSIGN_OR_RETURN(const json* const mounts, Array(container, "volumeMounts"));
    if (Has(variables, "name", kVariable)) {
      ++change.taken;
      taken_names.append(taken_names.empty() ? "" : ", ").append(Text(container, "name"));
      continue;
    }
    ++change.profiled;
    const std::string path = fmt::format("/spec/{}/{}", kind, i);
    std::vector<std::string> added{additions.variable};
    if (!Has(variables, "name", kNvtxVariable)) added.push_back(additions.nvtx_variable);
    patch.Append(variables, path + "/env", added);
    if (!Has(mounts, "mountPath", additions.folder))
      patch.Append(mounts, path + "/volumeMounts", {&additions.mount, 1});
  }
  return {};
}

Result<Change> ChangeOf(const json& pod, std::string_view library) {
  const json* const spec = Find(pod, "spec");
  if (spec == nullptr || !spec->is_object()) return Malformed("the pod has no spec");
  const Additions additions = For(library);
  ASSIGN_OR_RETURN(const json* const volumes, Array(*spec, "volumes"));
  Change change;
  Patch patch;
  std::string taken_names;
  for (const std::string_view kind : {"initContainers", "containers"})
    TRY(AddTo(*spec, kind, additions, patch, change, taken_names));
  if (change.profiled > 0) {
    if (!Has(volumes, "name", kVolume)) patch.Append(volumes, "/spec/volumes", {&additions.volume, 1});
    change.patch = patch.Take();
  }
  if (change.taken > 0)
    change.warning = fmt::format("gpusonde does not profile containers that have {} already: {}", kVariable,
                                 Printable(taken_names));
  else if (change.profiled == 0)
    change.warning = fmt::format(
        "gpusonde profiles nothing of this pod: it is labelled {}={}, but no container "
        "asks for a GPU",
        kLabel, kLabelValue);
  return change;
}

std::string Respond(std::string_view uid, const Change& change) {
  JsonWriter out;
  out.BeginObject().Field("apiVersion", kApiVersion).Field("kind", "AdmissionReview").Key("response");
  out.BeginObject().Field("uid", uid).Field("allowed", true);
  if (!change.patch.empty()) out.Field("patchType", "JSONPatch").Field("patch", Base64(change.patch));
  if (!change.warning.empty())
    out.Key("warnings").BeginArray().Value(Shorten(change.warning, kMaxWarning)).EndArray();
  return out.EndObject().EndObject().Take();
}

// The pod that a request would make, if it asks to be profiled; otherwise null.
const json* PodThatAsks(const json& request) {
  const json* const kind = Find(request, "kind");
  const json* const pod = Find(request, "object");
  if (kind == nullptr || pod == nullptr || Text(request, "operation") != "CREATE") return nullptr;
  if (Text(*kind, "kind") != "Pod" || !Text(*kind, "group").empty() || Text(*kind, "version") != "v1" ||
      !Text(request, "subResource").empty())
    return nullptr;
  const json* const metadata = Find(*pod, "metadata");
  const json* const labels = metadata != nullptr ? Find(*metadata, "labels") : nullptr;
  return labels != nullptr && Text(*labels, kLabel) == kLabelValue ? pod : nullptr;
}

}  // namespace

Result<ReviewAnswer> AnswerReview(std::string_view review, std::string_view library) {
  const json parsed = json::parse(review, nullptr, /*allow_exceptions=*/false);
  if (parsed.is_discarded()) return Malformed("the review is not JSON");
  if (Text(parsed, "kind") != "AdmissionReview" || Text(parsed, "apiVersion") != kApiVersion)
    return Malformed(fmt::format("it is no AdmissionReview of {}", kApiVersion));
  const json* const request = Find(parsed, "request");
  const std::string_view uid = request != nullptr ? Text(*request, "uid") : std::string_view();
  if (uid.empty()) return Malformed("the review has no request with a uid");
  const json* const pod = PodThatAsks(*request);
  if (pod == nullptr) return ReviewAnswer{.json = Respond(uid, {})};
  ASSIGN_OR_RETURN(const Change change, ChangeOf(*pod, library));
  const json& metadata = *Find(*pod, "metadata");
  const std::string_view name = Text(metadata, "name");
  return ReviewAnswer{.json = Respond(uid, change),
                      .profiled = change.profiled,
                      .taken = change.taken,
                      .pod_name = std::string(name.empty() ? Text(metadata, "generateName") : name)};
}

}  // namespace gpusonde::admission
