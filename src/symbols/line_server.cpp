// SPDX-License-Identifier: Apache-2.0
#include "symbols/line_server.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include <algorithm>
#include <deque>
#include <string>

#include "base/log.h"
#include "symbols/debug_file.h"
#include "symbols/debuginfod.h"
#include "symbols/dwarf_file.h"
#include "symbols/elf_file.h"
#include "symbols/line_protocol.h"

namespace gpusonde::symbols {
namespace {

// Debug information kept open; a program's samples are of a few files at a time.
constexpr size_t kMaxOpen = 4;
// Of address space: files are mapped, compressed sections are not.
constexpr rlim_t kMaxAddressSpace = rlim_t{16} << 30;

class Server {
 public:
  explicit Server(int socket) : socket_(socket) {}

  Status Answer(LineRequest request) {
    Opened& opened = Find(request);
    if (!opened.file.has_value()) {
      const bool absent = opened.file.error().code == ErrorCode::kNotFound;
      return SendAnswer(socket_,
                        {.file = request.file,
                         .kind = absent ? LineAnswer::Kind::kNoDebugInfo : LineAnswer::Kind::kUnreadable,
                         .offset = 0,
                         .frames = {}});
    }
    for (const uint64_t offset : request.offsets)
      TRY(SendAnswer(socket_, {.file = request.file, .offset = offset, .frames = opened.file->Find(offset)}));
    return {};
  }

 private:
  struct Opened {
    uint32_t number;
    Result<DwarfFile> file;
  };

  Opened& Find(LineRequest& request) {
    const auto known = std::ranges::find(open_, request.file, &Opened::number);
    if (known != open_.end()) return *known;
    if (open_.size() >= kMaxOpen) open_.pop_front();
    open_.push_back({request.file, Open(request)});
    return open_.back();
  }

  static Result<DwarfFile> Open(LineRequest& request) {
    const DebugPlaces places = DebugPlaces::Of(request.fd, request.path, request.pid);
    std::optional<Fd> debug = OpenDebugFile(request.fd.get(), request.path, places);
    const std::string build_id = ReadBuildId(request.fd.get()).value_or("");
    ASSIGN_OR_RETURN(Fd own, Duplicate(request.fd));
    Result<DwarfFile> local = DwarfFile::OpenWith(
        std::move(own), debug.has_value() ? std::move(*debug) : Fd(), request.path, places);
    if (local.has_value() || local.error().code != ErrorCode::kNotFound) return local;
    Result<Fd> fetched = FetchDebugFile(build_id);
    if (!fetched.has_value()) return local;
    return DwarfFile::OpenWith(std::move(request.fd), std::move(*fetched), request.path, places);
  }

  int socket_;
  std::deque<Opened> open_;
};

}  // namespace

Status ServeLines(int socket) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  ::prctl(PR_SET_NAME, "gpusonde-lines");
  ::setpriority(PRIO_PROCESS, 0, 10);
  const rlimit space{.rlim_cur = kMaxAddressSpace, .rlim_max = kMaxAddressSpace};
  ::setrlimit(RLIMIT_AS, &space);
  const rlimit no_core{.rlim_cur = 0, .rlim_max = 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  Server server(socket);
  while (true) {
    ASSIGN_OR_RETURN(std::optional<LineRequest> request, ReceiveRequest(socket));
    if (!request.has_value()) return {};
    const Status answered = server.Answer(std::move(*request));
    // The client may end without waiting for its answers.
    if (!answered.has_value() && answered.error().code == ErrorCode::kNotFound) return {};
    TRY(answered);
  }
}

}  // namespace gpusonde::symbols
