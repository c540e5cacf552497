// SPDX-License-Identifier: Apache-2.0
// Files of the parties of a fleet: the description, of which the catalog is a part, releases, keys and
// tickets. The first byte says which.
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/fd.h"
#include "fleet/catalog_file.h"
#include "fleet/service/keys.h"
#include "fleet/service/release_file.h"
#include "scratch_folder.h"

namespace {

using namespace gpusonde;  // NOLINT(google-build-using-namespace): a program of its own

void ReadAsDescription(const std::string& text) {
  const auto read = fleet::ParseDescription(text);
  if (!read.has_value()) return;
  if (read->layout().places() == 0) std::abort();
  const auto again = fleet::ParseDescription(ToJson(*read));
  if (!again.has_value() || again->Id() != read->Id()) std::abort();
}

void ReadAsCatalog(const std::string& text) {
  const auto read = fleet::ParseCatalog(text);
  if (!read.has_value()) return;
  const std::string json = ToJson(*read);
  const auto again = fleet::ParseCatalog(json);
  if (!again.has_value() || ToJson(*again) != json) std::abort();
  for (const fleet::Catalog::Application& application : read->applications)
    static_cast<void>(fleet::BestMatch(fleet::Scores(*read, application.fingerprint)));
}

void ReadAsRelease(const ScratchFolder& folder) {
  const auto read = fleet::ReadRelease(folder.path(), 7);
  if (!read.has_value()) return;
  const auto text = ReadFile(folder / "7.release");
  if (!text.has_value() || !WriteRelease(folder.path(), *read).has_value()) std::abort();
  const auto again = fleet::ReadRelease(folder.path(), 7);
  if (!again.has_value() || *again != *read || ReadFile(folder / "7.release")->size() != text->size())
    std::abort();
}

void ReadAsSecret(const ScratchFolder& folder) {
  static_cast<void>(fleet::ReadKeyFile(folder / "7.release"));
  const auto ticket = fleet::ReadTicket(folder / "7.release");
  if (!ticket.has_value()) return;
  if (!WriteTicket(folder / "ticket", *ticket).has_value()) std::abort();
  const auto again = fleet::ReadTicket(folder / "ticket");
  std::filesystem::remove(folder / "ticket");
  if (!again.has_value() || again->device != ticket->device || again->signature != ticket->signature)
    std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const ScratchFolder folder;
  if (size == 0) return 0;
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] == 'd') ReadAsDescription(text);
  if (data[0] == 'c') ReadAsCatalog(text);
  if (data[0] != 'r' && data[0] != 's') return 0;
  if (!WriteFileAtomically(folder / "7.release", text).has_value()) std::abort();
  data[0] == 'r' ? ReadAsRelease(folder) : ReadAsSecret(folder);
  return 0;
}
