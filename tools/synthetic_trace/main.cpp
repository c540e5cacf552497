// SPDX-License-Identifier: Apache-2.0
// Writes traces of a synthetic job, for tests and benchmarks of gpusonde analyze: see workload.h.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>

#include "writers.h"

int main(int argc, char** argv) {
  using gpusonde::synthetic::Plan;
  Plan plan;
  std::string format = "nsys";
  std::string output;
  int operators = 2;
  CLI::App app("Writes traces of a synthetic job: Nsight Systems SQLite, or Kineto JSON");
  app.add_option("--format", format, "nsys or kineto")->check(CLI::IsMember({"nsys", "kineto"}));
  app.add_option("-o,--output", output, "The file; for kineto with {} for the rank")->required();
  app.add_option("--ranks", plan.ranks, "Ranks, each on a GPU of its own")->check(CLI::Range(1, 4096));
  app.add_option("--kernels", plan.kernels, "Kernels of all ranks together, rounded to steps of 201");
  app.add_option("--seed", plan.seed, "Another one gives other durations");
  app.add_option("--noise", plan.noise, "Standard deviation of a kernel's log duration");
  app.add_option("--copy-effect", plan.copy_effect, "Factor on kernels beside a copy");
  app.add_option("--slow-rank", plan.slow_rank, "A rank whose kernels take longer…");
  app.add_option("--slow-factor", plan.slow_factor, "… by this factor");
  app.add_option("--window-rank", plan.slow_window_rank,
                 "A rank that is slower from 40 % to 50 % of the steps…");
  app.add_option("--window-factor", plan.window_factor, "… by this factor");
  app.add_option("--late-rank", plan.late_rank, "A rank whose host is late for every collective…");
  app.add_option("--late-ns", plan.late_ns, "… by this time");
  app.add_option("--clock-offset-ns", plan.clock_offset_ns,
                 "Offset of each rank's clock from the previous rank's, for kineto");
  app.add_option("--variable-factor", plan.variable_factor, "Factor on every eighth run of kernel_3");
  app.add_option("--operators", operators, "cpu_op events per call, for kineto");
  CLI11_PARSE(app, argc, argv);
  const gpusonde::Status done = format == "nsys" ? gpusonde::synthetic::WriteNsys(plan, output)
                                                 : gpusonde::synthetic::WriteKineto(plan, output, operators);
  if (done.has_value()) return 0;
  fmt::print(stderr, "synthetic_trace: {}\n", done.error().message);
  return 1;
}
