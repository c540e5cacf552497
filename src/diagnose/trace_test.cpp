// SPDX-License-Identifier: Apache-2.0
// Rows as traces of other profilers have them: without signals of the host.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "base/testing/units.h"
#include "diagnose/cause.h"
#include "diagnose/diagnosis.h"

namespace gpusonde::diagnose {
namespace {

using testing::HasSubstr;

struct TraceTest : testing::Test {
  // Steps of this length whose kernel takes this part of it, while the thread waits for it if it is known to.
  void Run(int steps, int64_t step_ns, int64_t kernel_ns, bool waits = false) {
    for (int step = 0; step < steps; ++step, now_ns += step_ns) {
      diagnosis.Ingest(model::Kernel{
          .process = program, .start_ns = now_ns, .end_ns = now_ns + kernel_ns, .name = "gemm"});
      if (waits)
        diagnosis.Ingest(model::Sync{
            .process = program, .start_ns = now_ns, .end_ns = now_ns + kernel_ns, .kind = "stream"});
      diagnosis.Advance(now_ns);
    }
  }
  std::string SentenceOf(int64_t kernel_ns, bool waits) {
    Run(150, 30 * kMs, 10 * kMs, waits);
    Run(60, 90 * kMs, kernel_ns, waits);
    diagnosis.Finish(now_ns);
    const auto reports = diagnosis.Reports();
    EXPECT_EQ(reports.size(), 1u);
    if (reports.size() != 1) return "";
    EXPECT_EQ(reports[0].incident.cause, kAbstain);
    return reports[0].incident.sentence;
  }

  Diagnosis diagnosis{{.awaits_signals = false}};
  const Id128 program{7, 1};
  int64_t now_ns = 1'800'000'000 * kSecond;
};

TEST_F(TraceTest, WithoutSignalsTheSentenceSaysSo) {
  EXPECT_THAT(SentenceOf(10 * kMs, false),
              HasSubstr("No cause: no host signals of this program were received"));
}

TEST_F(TraceTest, WhatTheGpuDidLongerIsKnownWithoutSignals) {
  const std::string sentence = SentenceOf(70 * kMs, true);
  EXPECT_THAT(sentence, HasSubstr("in \"GPU kernels\": gemm takes 69 ms of a step (10.0 ms before)"));
  EXPECT_THAT(sentence,
              HasSubstr("; no host signals of this program were received. The flame graph of its GPU time"));
}

// As emit_nvtx() writes them, one of them once per step.
TEST_F(TraceTest, OperatorsOfPyTorchMarkNoSteps) {
  for (const auto& [name, marks] :
       {std::pair("aten::mm, seq = 12, op_id = 34", false), std::pair("train", true)}) {
    Diagnosis diagnosed{{}};
    for (int64_t step = 0; step < 200; ++step) {
      const int64_t begin_ns = now_ns + step * 30 * kMs;
      diagnosed.Ingest(
          model::Kernel{.process = program, .start_ns = begin_ns, .end_ns = begin_ns + kMs, .name = "k"});
      diagnosed.Ingest(model::Range{
          .process = program, .tid = 1, .start_ns = begin_ns, .end_ns = begin_ns + 2 * kMs, .name = name});
      diagnosed.Advance(begin_ns);
    }
    EXPECT_EQ(diagnosed.FoundSteps().front().anchor, marks ? "range train" : "kernel k");
  }
}

}  // namespace
}  // namespace gpusonde::diagnose
