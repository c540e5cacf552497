// SPDX-License-Identifier: Apache-2.0
#include "server/profile_question.h"

#include <fmt/format.h>

#include <optional>
#include <string_view>

#include "model/enums.h"

namespace gpusonde::server {
namespace {

Result<model::ProfileType> TakeType(QueryParameters& parameters) {
  using enum model::ProfileType;
  const std::string_view name = parameters.TakeText("type").value_or("cpu");
  for (const model::ProfileType type : {kCpu, kGpu, kOffCpu})
    if (model::EnumNames<model::ProfileType>::Name(type) == name) return type;
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("parameter 'type' takes cpu, gpu or off_cpu, not '{}'", name));
}

// The kind of wait asked for; empty for all kinds.
Result<std::optional<model::ThreadState>> TakeWait(QueryParameters& parameters) {
  using enum model::ThreadState;
  const std::optional<std::string_view> name = parameters.TakeText("wait");
  if (!name.has_value()) return std::optional<model::ThreadState>();
  for (const model::ThreadState state : {kIo, kLock, kCondition, kSleep, kRunQueue, kGpuWait})
    if (model::EnumNames<model::ThreadState>::Name(state) == *name) return state;
  return Fail(
      ErrorCode::kInvalidArgument,
      fmt::format("parameter 'wait' takes io, lock, condition, sleep, run_queue or gpu_wait, not '{}'",
                  *name));
}

}  // namespace

Result<ProfileQuestion> TakeProfileQuestion(QueryParameters& parameters) {
  using enum model::ProfileType;
  ProfileQuestion question;
  ASSIGN_OR_RETURN(question.type, TakeType(parameters));
  ASSIGN_OR_RETURN(const std::optional<model::ThreadState> wait, TakeWait(parameters));
  ASSIGN_OR_RETURN(question.selection, parameters.TakeSelection());
  if (question.type != kCpu && question.selection.while_gpu_idle)
    return Fail(
        ErrorCode::kInvalidArgument,
        "parameter 'while_gpu_idle' is for type=cpu: an idle GPU has no GPU time, and a wait is stored as a "
        "whole, without what the GPU did during it");
  if (question.type != kOffCpu && wait.has_value())
    return Fail(ErrorCode::kInvalidArgument, "parameter 'wait' is for type=off_cpu");
  question.selection.off_cpu = question.type == kOffCpu;
  question.selection.wait = wait;
  return question;
}

Result<model::Profile> ReadProfile(ApiData& data, model::ProfileType type,
                                   const model::Selection& selection) {
  return type == model::ProfileType::kGpu ? data.ReadGpuProfile(selection) : data.ReadProfile(selection);
}

}  // namespace gpusonde::server
