// SPDX-License-Identifier: Apache-2.0
#include "sources/cupti/gpu_events.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/testing/descriptors.h"
#include "base/testing/refused.h"
#include "base/testing/temp_folder.h"
#include "sources/cupti/inject_library.h"

namespace gpusonde::cupti {
namespace {

// A copy of the library in this folder, which it makes.
std::string CopyInto(const std::string& folder, const std::string& library) {
  std::filesystem::create_directory(folder);
  std::string path = folder + "/libgpusonde-inject.so";
  std::filesystem::copy_file(library, path);
  return path;
}

TEST(GpuEvents, CopiesOfTheLibraryAreAttachedToUpToALimit) {
  const std::optional<std::string> library = FindInjectLibrary();
  if (!library.has_value()) GTEST_SKIP() << "libgpusonde-inject.so is not built";
  const Result<ebpf::StackTables> tables = ebpf::StackTables::Create();
  SKIP_WHERE_REFUSED(tables);
  Result<GpuEvents> events =
      GpuEvents::Create({.library_path = *library, .every_process = true, .max_files = 2}, &*tables);
  SKIP_WHERE_REFUSED(events);
  const TempFolder folder;
  const auto copy = [&](const std::string& name) { return CopyInto(folder / name, *library); };
  const std::string first = copy("first");
  const std::string second = copy("second");
  const std::string third = copy("third");
  EXPECT_TRUE(events->Consider(::getpid(), first).value());
  EXPECT_FALSE(events->Consider(::getpid(), second).value()) << "the installed one and one copy";
  EXPECT_FALSE(events->Consider(::getpid(), second).value());
  EXPECT_EQ(events->DrainDrops().Of(model::DropReason::kGpuProgramUnrecorded), 1) << "once per file";
  std::filesystem::remove(first);
  EXPECT_TRUE(events->Consider(::getpid(), third).value()) << "in the place of the deleted one";
  EXPECT_EQ(events->DrainDrops().Of(model::DropReason::kGpuProgramUnrecorded), 0);
}

TEST(GpuEvents, AFileThatIsWrittenInPlaceIsReadAgain) {
  const std::optional<std::string> library = FindInjectLibrary();
  if (!library.has_value()) GTEST_SKIP() << "libgpusonde-inject.so is not built";
  const Result<ebpf::StackTables> tables = ebpf::StackTables::Create();
  SKIP_WHERE_REFUSED(tables);
  Result<GpuEvents> events = GpuEvents::Create({.library_path = *library, .every_process = true}, &*tables);
  SKIP_WHERE_REFUSED(events);
  const TempFolder folder;
  const std::string copy = folder / "libgpusonde-inject.so";
  const std::string content = ReadFile(*library).value();
  const auto write = [&](const std::string& bytes) {
    ::usleep(20'000);  // the clock of files ticks every 10 ms at most
    std::ofstream(copy, std::ios::binary | std::ios::trunc) << bytes;
  };
  std::string older = content;
  older.back() ^= 1;
  write(older);
  EXPECT_FALSE(events->Consider(::getpid(), copy).value());
  EXPECT_FALSE(events->Consider(::getpid(), copy).value());
  write(content);
  EXPECT_TRUE(events->Consider(::getpid(), copy).value());
}

// With any number of probes that could still be attached before the descriptors ran out.
TEST(GpuEvents, AFileThatCouldNotBeAttachedToIsAttachedToTheNextTime) {
  const std::optional<std::string> library = FindInjectLibrary();
  if (!library.has_value()) GTEST_SKIP() << "libgpusonde-inject.so is not built";
  const Result<ebpf::StackTables> tables = ebpf::StackTables::Create();
  SKIP_WHERE_REFUSED(tables);
  Result<GpuEvents> events =
      GpuEvents::Create({.library_path = *library, .every_process = true, .budget = 0.01}, &*tables);
  SKIP_WHERE_REFUSED(events);
  const TempFolder folder;
  const auto copy = [&](const std::string& name) { return CopyInto(folder / name, *library); };
  const size_t before = OpenDescriptors();
  ASSERT_TRUE(events->Consider(::getpid(), copy("first")).value());
  const size_t with_first = OpenDescriptors();
  const std::string second = copy("second");
  int failures = 0;
  for (int more = 1; more < 30; ++more) {
    Result<bool> attached = false;
    {
      const DescriptorLimit limit(more);
      attached = events->Consider(::getpid(), second);
    }
    if (attached.has_value()) {
      EXPECT_TRUE(*attached);
      break;
    }
    ++failures;
    for (int i = 0; i < 100 && OpenDescriptors() != with_first; ++i) ::usleep(100'000);  // detaching
    EXPECT_EQ(OpenDescriptors(), with_first) << "with " << more;
  }
  EXPECT_GT(failures, 3);
  EXPECT_EQ(OpenDescriptors() - with_first, with_first - before);
}

}  // namespace
}  // namespace gpusonde::cupti
