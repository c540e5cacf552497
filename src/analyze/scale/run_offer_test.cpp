// SPDX-License-Identifier: Apache-2.0
#include "analyze/scale/run_offer.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "analyze/archive.h"
#include "analyze/trace_state.h"
#include "base/fd.h"
#include "base/testing/temp_folder.h"

namespace gpusonde::analyze {
namespace {

using testing::ElementsAre;

// As another process gets it.
RunOffer Received(RunOffer& offer) {
  ArchiveWriter writer;
  writer(offer);
  const std::string bytes = writer.Take();
  ArchiveReader reader(bytes);
  RunOffer received;
  reader(received);
  EXPECT_TRUE(reader.ok());
  return received;
}

// Two records in a file and one in memory, whose names are numbered anew.
GpuRuns Collect(const std::shared_ptr<TemporaryFile>& file) {
  GpuRuns read(file);
  read.Add({.start_ns = 20, .correlation = 2, .name = 1});
  read.Add({.start_ns = 10, .correlation = 1, .name = 0});
  {
    const std::optional<RunMemory> all = RunMemory::Take(RunMemory::kMaxBytes);
    EXPECT_TRUE(all.has_value());
    read.Spill();
  }
  read.Add({.start_ns = 30, .correlation = 3, .name = 1});
  GpuRuns runs(file);
  runs.Take(std::move(read), std::make_shared<const Renumbering>(Renumbering{.names = {7, 5}, .ranks = {3}}));
  runs.Pack();
  return runs;
}

TEST(RunOffer, RunsAreReadInTheFilesWhereTheyAreOrSent) {
  const auto file = std::make_shared<TemporaryFile>();
  const GpuRuns runs = Collect(file);
  RunOffer offer;
  offer.Add({.trace = 4, .process = 2, .kind = RecordKind::kGpu}, runs.runs());
  const RunOffer received = Received(offer);
  const auto files = received.Open(1);
  ASSERT_TRUE(files.has_value());
  ASSERT_EQ(received.runs().size(), 2U);
  const RunOffer::Offered& filed = received.runs()[0];
  EXPECT_EQ(filed.place.trace, 4U);
  EXPECT_EQ(filed.place.process, 2U);
  EXPECT_EQ(filed.file, 0U);
  const RunOffer::Offered& kept = received.runs()[1];
  EXPECT_EQ(kept.file, RunOffer::kInMemory);
  std::vector<std::byte> sent(kept.bytes);
  ASSERT_TRUE(CopyBytes(runs.runs()[1], 0, std::span(sent)).has_value());
  GpuRuns here(std::make_shared<TemporaryFile>());
  here.AddRun((*files)[filed.file], filed.offset, filed.bytes, filed.count, received.ChangeOf(filed));
  here.AddRun(sent, kept.count, received.ChangeOf(kept));
  Merged<GpuRecord, ByCorrelation, Renumbering> merged(here.runs());
  std::vector<std::array<int64_t, 3>> read;
  while (const GpuRecord* record = merged.Next())
    read.push_back({record->start_ns, record->name, record->rank});
  EXPECT_TRUE(merged.status().has_value());
  EXPECT_THAT(read, ElementsAre(std::array<int64_t, 3>{10, 7, 3}, std::array<int64_t, 3>{20, 5, 3},
                                std::array<int64_t, 3>{30, 5, 3}));
}

TEST(RunOffer, AnotherFileOfTheSameNumberIsNotTakenForIt) {
  auto file = std::make_shared<TemporaryFile>();
  RunOffer received;
  {
    const GpuRuns runs = Collect(file);
    RunOffer offer;
    offer.Add({}, runs.runs());
    received = Received(offer);
    EXPECT_FALSE(received.Open(0).has_value()) << "one file is more than none";
    EXPECT_TRUE(received.Open(1).has_value());
  }
  const int number = file->fd();
  file.reset();
  EXPECT_FALSE(received.Open(1).has_value()) << "it is closed";
  TemporaryFile other;
  ASSERT_TRUE(other.Append(std::vector<std::byte>(4'096)).has_value());
  ASSERT_EQ(other.fd(), number);
  EXPECT_FALSE(received.Open(1).has_value());

  const TempFolder folder;
  const std::string pipe = folder / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const Fd reader(::open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  ASSERT_EQ(::dup2(reader.get(), number), number);
  EXPECT_FALSE(received.Open(1).has_value()) << "nor does it wait for somebody who writes to a pipe";
}

TEST(RunOffer, WithoutFilesItIsAccepted) {
  RunOffer offer;
  EXPECT_TRUE(Received(offer).Open(0).has_value());
}

}  // namespace
}  // namespace gpusonde::analyze
