// SPDX-License-Identifier: Apache-2.0
#include "agent/file_server.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include <new>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/fd.h"
#include "base/sandbox.h"
#include "symbols/elf_file.h"
#include "symbols/file_protocol.h"
#include "symbols/python_interpreter.h"
#include "unwind/compile.h"

namespace gpusonde::agent {
namespace {

// The largest files that the parsers' budgets allow take 280 MB.
constexpr int64_t kMaxDataBytes = int64_t{1} << 30;
constexpr rlim_t kMaxAnswerBytes = rlim_t{256} << 20;
// In the background, so that an agent that starts doesn't slow programs down: its first files take 0.13 s of
// CPU time, which spread over 4 s where two programs kept two CPUs busy. With 19 or SCHED_IDLE it would be
// half a minute and more, in which stacks break off for want of unwind tables.
constexpr int kNice = 10;

Status Answer(symbols::FileRequest request) {
  try {
    ASSIGN_OR_RETURN(const std::string bytes, ParseFile(request));
    return WriteAll(request.answer.get(), std::as_bytes(std::span(bytes)));
  } catch (const std::bad_alloc&) {
    return Fail(ErrorCode::kUnsupported, request.name + " takes too much memory to read");
  }
}

}  // namespace

Result<std::string> ParseFile(symbols::FileRequest& request) {
  using enum symbols::FileRequestKind;
  switch (request.kind) {
    case kSymbols: {
      ASSIGN_OR_RETURN(const symbols::ElfFile file,
                       symbols::ElfFile::LoadWithDebugFile(std::move(request.file), request.name,
                                                           std::move(request.debug_file)));
      return file.Pack();
    }
    case kUnwindTable: {
      unwind::RuleSet rules;
      ASSIGN_OR_RETURN(const unwind::Table table,
                       unwind::CompileFile(request.file.get(), request.name, rules));
      return unwind::Pack(table, rules.rules());
    }
    case kPython: {
      ASSIGN_OR_RETURN(const auto found, symbols::FindPythonInterpreter(request.file.get(), request.name));
      return symbols::PackPython(found);
    }
  }
  return Fail(ErrorCode::kInternal, "unknown request type");
}

Status ServeFiles(int socket, FilePriority priority) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::prctl(PR_SET_NAME, "gpusonde-files");
  if (priority == FilePriority::kBackground) ::setpriority(PRIO_PROCESS, 0, kNice);
  ::signal(SIGXFSZ, SIG_IGN);
  const rlimit answers{.rlim_cur = kMaxAnswerBytes, .rlim_max = kMaxAnswerBytes};
  ::setrlimit(RLIMIT_FSIZE, &answers);
  EnterSandbox({.readable = {}, .writable = {}, .receives_files = true, .max_data_bytes = kMaxDataBytes});
  while (true) {
    ASSIGN_OR_RETURN(std::optional<symbols::FileRequest> request, symbols::ReceiveFileRequest(socket));
    if (!request.has_value()) return {};
    TRY(symbols::SendFileAnswer(socket, Answer(std::move(*request))));
  }
}

}  // namespace gpusonde::agent
