// SPDX-License-Identifier: Apache-2.0
#include "analyze/scale/crew.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <string_view>
#include <utility>

#include "analyze/archive.h"
#include "base/program_file.h"
#include "base/text.h"

namespace gpusonde::analyze {
namespace {

// libmpi.so itself is the launcher's own, found by the dynamic loader ($LD_LIBRARY_PATH).
constexpr std::string_view kPlugin = "/lib/libgpusonde-mpi.so";

// Ranks of one machine need nothing but shared memory. Without a search for networks, Open MPI 4.1 starts and
// ends in 0.2 s less (two ranks on two cores). Excluded are what drives networks, as names of components of
// other versions do no harm in such a list. What the user chose stays.
void LookForNoNetwork() {
  const char* const here = std::getenv("OMPI_COMM_WORLD_LOCAL_SIZE");
  const char* const everywhere = std::getenv("OMPI_COMM_WORLD_SIZE");
  if (here == nullptr || everywhere == nullptr || std::string_view(here) != everywhere) return;
  if (std::getenv("OMPI_MCA_pml") != nullptr || std::getenv("OMPI_MCA_btl") != nullptr) return;
  ::setenv("OMPI_MCA_pml", "^cm,ucx", 0);
  ::setenv("OMPI_MCA_btl", "^openib,ofi,tcp,uct,usnic", 0);
}

}  // namespace

bool Crew::IsLaunched() {
  // Open MPI's mpirun; Hydra's and Slurm's PMI.
  return std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr || std::getenv("PMI_SIZE") != nullptr ||
         std::getenv("PMIX_RANK") != nullptr;
}

std::optional<Crew::Place> Crew::ExpectedPlace() {
  for (const auto& [rank_name, size_name] :
       {std::pair("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"), std::pair("PMI_RANK", "PMI_SIZE")}) {
    const char* const rank_text = std::getenv(rank_name);
    const char* const size_text = std::getenv(size_name);
    if (rank_text == nullptr || size_text == nullptr) continue;
    const auto rank = ParseNumber<int>(rank_text);
    const auto size = ParseNumber<int>(size_text);
    if (rank.has_value() && size.has_value() && *rank >= 0 && *rank < *size) return Place{*rank, *size};
  }
  return std::nullopt;
}

Result<std::unique_ptr<Crew>> Crew::Load() {
  ASSIGN_OR_RETURN(const std::string folder, InstallFolder());
  const std::string path = folder + std::string(kPlugin);
  void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr)
    return Fail(ErrorCode::kUnavailable, fmt::format("started by an MPI launcher, but {}", ::dlerror()));
  const auto functions = reinterpret_cast<decltype(&gpusonde_mpi)>(::dlsym(library, "gpusonde_mpi"));
  if (functions == nullptr) return Fail(ErrorCode::kUnavailable, path + ": not gpusonde's MPI plugin");
  LookForNoNetwork();
  return std::unique_ptr<Crew>(new Crew(functions()));
}

Status Crew::Join() {
  if (mpi_->join(&place_.rank, &place_.size) != 0)
    return Fail(ErrorCode::kUnavailable, "MPI could not be started");
  joined_ = true;
  return {};
}

Crew::~Crew() {
  if (joined_) mpi_->leave();
}

void Crew::Abort() const {
  mpi_->abort(1);
  std::abort();
}

Result<std::string> Crew::Exchange(int to, std::string_view bytes, int from) const {
  void* received = nullptr;
  size_t size = 0;
  if (const int status = mpi_->exchange(to, bytes.data(), bytes.size(), from, &received, &size); status != 0)
    return Fail(ErrorCode::kIo, fmt::format("rank {}: MPI failed with error {}", rank(), status));
  std::string result(static_cast<const char*>(received), size);
  std::free(received);
  return result;
}

Result<std::vector<std::string>> Crew::Gather(std::string_view own) const {
  std::vector<std::string> all;
  if (rank() != 0) {
    TRY(Exchange(0, own, -1));
    return all;
  }
  all.emplace_back(own);
  for (int from = 1; from < size(); ++from) {
    ASSIGN_OR_RETURN(std::string bytes, Exchange(-1, {}, from));
    all.push_back(std::move(bytes));
  }
  return all;
}

Result<std::vector<std::string>> Crew::GatherAll(std::string_view own) const {
  std::vector<std::string> all(static_cast<size_t>(size()));
  all[static_cast<size_t>(rank())] = own;
  for (int step = 1; step < size(); ++step) {
    const int from = (rank() + size() - step) % size();
    ASSIGN_OR_RETURN(all[static_cast<size_t>(from)], Exchange((rank() + step) % size(), own, from));
  }
  return all;
}

}  // namespace gpusonde::analyze
