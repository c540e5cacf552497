// SPDX-License-Identifier: Apache-2.0
#include "sources/cupti/decoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "wire/nvidia/cupti.h"

namespace gpusonde::cupti {
namespace {

using model::DropReason;

constexpr int32_t kPid = 4711;

// Builds a batch record by record.
class Batch {
 public:
  explicit Batch(uint16_t channel = GPUSONDE_GPU_RECORDS, uint64_t sequence = 0, uint32_t session = 1,
                 uint64_t instance = 0) {
    const gpusonde_gpu_batch header{.magic = GPUSONDE_GPU_MAGIC,
                                    .version = GPUSONDE_GPU_VERSION,
                                    .channel = channel,
                                    .bytes = 0,
                                    .session = session,
                                    .sequence = sequence,
                                    .instance = instance};
    Append(&header, sizeof header);
  }

  template <class Record>
  Batch& Add(uint16_t type, Record record, std::string_view text = {}) {
    const std::string padded = Padded(text);
    record.record = {.type = type, .bytes = static_cast<uint16_t>(sizeof record + padded.size())};
    Append(&record, sizeof record);
    Append(padded.data(), padded.size());
    return *this;
  }

  std::vector<std::byte> bytes() const {
    std::vector<std::byte> whole = bytes_;
    const auto size = static_cast<uint32_t>(whole.size());
    std::memcpy(whole.data() + offsetof(gpusonde_gpu_batch, bytes), &size, sizeof size);
    return whole;
  }

 private:
  static std::string Padded(std::string_view text) {
    std::string padded(text);
    padded.resize((text.size() + 7) / 8 * 8);
    return padded;
  }
  void Append(const void* data, size_t size) {
    bytes_.resize(bytes_.size() + size);
    std::memcpy(bytes_.data() + bytes_.size() - size, data, size);
  }
  std::vector<std::byte> bytes_;
};

gpusonde_gpu_name Name(uint32_t id, uint32_t length) {
  return {.record = {}, .id = id, .length = length, .cut = 0};
}

gpusonde_gpu_kernel KernelOf(uint32_t name, uint64_t start_ns = 100, uint64_t end_ns = 250) {
  gpusonde_gpu_kernel kernel{};
  kernel.correlation = 5;
  kernel.start_ns = start_ns;
  kernel.end_ns = end_ns;
  kernel.name = name;
  kernel.grid_x = 8;
  kernel.block_x = 32;
  kernel.graph_node = 17;
  return kernel;
}

gpusonde_gpu_call CallOf(uint32_t probability) {
  return {.record = {},
          .correlation = 5,
          .start_ns = 10,
          .end_ns = 20,
          .tid = 9,
          .probability = probability,
          .domain = GPUSONDE_CUPTI_DOMAIN_DRIVER,
          .callback_id = 307,
          .result = 0,
          .padding = 0};
}

gpusonde_gpu_range RangeOf(uint16_t text_length, uint16_t domain_length) {
  return {.record = {},
          .tid = 9,
          .start_ns = 10,
          .end_ns = 20,
          .kind = GPUSONDE_GPU_RANGE_PUSH_POP,
          .domain_length = domain_length,
          .text_length = text_length,
          .padding = 0};
}

gpusonde_gpu_collective CollectiveCall() {
  gpusonde_gpu_collective call{};
  call.tid = 9;
  call.communicator = 0xabc;
  call.rank = 3;
  call.sequence = 41;
  call.count = 1024;
  call.called_ns = 10;
  call.begin_ns = 20;
  call.end_ns = 30;
  call.channels = 2;
  std::memcpy(call.operation, "AllReduce", 9);
  std::memset(call.datatype, 'x', sizeof call.datatype);  // without its zero
  return call;
}

class DecoderTest : public ::testing::Test {
 protected:
  // Returns the number of events.
  int Decode(const std::vector<std::byte>& batch, const Decoder::Visit& visit = [](const Event&) {}) {
    int events = 0;
    decoder_.Decode({.pid = kPid}, batch, [&](const Event& event) {
      sessions_.push_back(event.session);
      ++events;
      visit(event);
    });
    return events;
  }
  int64_t Malformed() { return decoder_.DrainDrops().Of(DropReason::kGpuMalformed); }

  Decoder decoder_;
  std::vector<uint32_t> sessions_;  // of each event
};

TEST_F(DecoderTest, GivesAKernelItsName) {
  Decode(Batch(GPUSONDE_GPU_STATE).Add(GPUSONDE_GPU_NAME, Name(3, 6), "_Z1kPf").bytes());
  EXPECT_EQ(Decode(Batch().Add(GPUSONDE_GPU_KERNEL, KernelOf(3)).bytes(),
                   [](const Event& event) {
                     const auto& kernel = std::get<Kernel>(event.what);
                     EXPECT_EQ(event.pid, kPid);
                     EXPECT_EQ(event.session, 1U);
                     EXPECT_EQ(kernel.name, "_Z1kPf");
                     EXPECT_EQ(kernel.correlation, 5U);
                     EXPECT_EQ(kernel.start_ns, 100);
                     EXPECT_EQ(kernel.end_ns, 250);
                     EXPECT_EQ(kernel.graph_node, 17U);
                   }),
            1);
}

TEST_F(DecoderTest, ForgetsNamesWithTheSession) {
  Decode(Batch(GPUSONDE_GPU_STATE).Add(GPUSONDE_GPU_NAME, Name(3, 6), "_Z1kPf").bytes());
  Decode(Batch(GPUSONDE_GPU_RECORDS, 0, 2).Add(GPUSONDE_GPU_KERNEL, KernelOf(3)).bytes(),
         [](const Event& event) { EXPECT_EQ(std::get<Kernel>(event.what).name, ""); });
  EXPECT_EQ(decoder_.DrainDrops().Of(DropReason::kGpuNameLost), 1);
}

class ManyProcesses : public ::testing::Test {
 protected:
  // Whether a kernel of this process has the name that it was given before.
  bool IsNamed(int32_t pid, uint32_t id, uint32_t session = 1) {
    const std::string name(1000, 'n');
    const auto length = static_cast<uint32_t>(name.size());
    bool named = false;
    const auto decode = [&](const std::vector<std::byte>& batch) {
      decoder_.Decode({.pid = pid}, batch,
                      [&](const Event& event) { named = std::get<Kernel>(event.what).name == name; });
    };
    decode(
        Batch(GPUSONDE_GPU_STATE, sequence_, session).Add(GPUSONDE_GPU_NAME, Name(id, length), name).bytes());
    decode(Batch(GPUSONDE_GPU_RECORDS, sequence_++, session).Add(GPUSONDE_GPU_KERNEL, KernelOf(id)).bytes());
    return named;
  }

  Decoder decoder_{false, 100'000};
  uint64_t sequence_ = 0;
};

TEST_F(ManyProcesses, TogetherKeepABoundedAmountOfNames) {
  int32_t pid = 1;
  while (pid < 1000 && IsNamed(pid, 1)) ++pid;
  EXPECT_GT(pid, 80);
  EXPECT_LE(pid, 100);
  EXPECT_EQ(decoder_.DrainDrops().Of(DropReason::kGpuNameLost), 2) << "the name, and the kernel's";
  EXPECT_FALSE(IsNamed(pid, 1));
  decoder_.Forget(1);
  EXPECT_TRUE(IsNamed(pid, 2)) << "there is room again";
}

TEST_F(ManyProcesses, CountWhatHoldsNames) {
  EXPECT_FALSE(IsNamed(1, 65'535)) << "it takes the place of 65,536 names";
  EXPECT_TRUE(IsNamed(1, 100));
}

TEST_F(ManyProcesses, GiveBackTheNamesOfEarlierSessions) {
  for (uint32_t session = 1; session < 1000; ++session) ASSERT_TRUE(IsNamed(1, 1, session)) << session;
}

TEST_F(DecoderTest, IgnoresTimesThatRunBackwards) {
  Decode(Batch().Add(GPUSONDE_GPU_KERNEL, KernelOf(0, 300, 200)).bytes(), [](const Event& event) {
    EXPECT_EQ(std::get<Kernel>(event.what).start_ns, 0);
    EXPECT_EQ(std::get<Kernel>(event.what).end_ns, 0);
  });
}

TEST_F(DecoderTest, SkipsABatchThatWasReceivedBefore) {
  const std::vector<std::byte> batch = Batch().Add(GPUSONDE_GPU_KERNEL, KernelOf(0)).bytes();
  EXPECT_EQ(Decode(batch), 1);
  EXPECT_EQ(Decode(batch), 0);
  EXPECT_EQ(Malformed(), 0);
}

TEST_F(DecoderTest, CountsGapsAsLostButNotOutOfOrderBatches) {
  for (const uint64_t sequence : {10, 11, 14, 13, 20})
    Decode(Batch(GPUSONDE_GPU_RECORDS, sequence).Add(GPUSONDE_GPU_KERNEL, KernelOf(0)).bytes());
  EXPECT_EQ(decoder_.DrainDrops().Of(DropReason::kGpuMessagesLost), 0);  // they may be out of order
  Decode(Batch(GPUSONDE_GPU_RECORDS, 15).bytes());
  EXPECT_EQ(decoder_.DrainDrops().Of(DropReason::kGpuMessagesLost), 5);  // 12, 16, 17, 18, 19
  EXPECT_EQ(decoder_.DrainDrops().Of(DropReason::kGpuMessagesLost), 0);
  Decode(Batch(GPUSONDE_GPU_RECORDS, 22).bytes());
  decoder_.Forget(kPid);
  EXPECT_EQ(decoder_.DrainDrops().Of(DropReason::kGpuMessagesLost), 1);  // 21
}

TEST_F(DecoderTest, AnExecRestartsSequenceNumbersAndContinuesSessionNumbers) {
  const auto kernel = [](uint64_t sequence, uint64_t instance) {
    return Batch(GPUSONDE_GPU_RECORDS, sequence, 1, instance).Add(GPUSONDE_GPU_KERNEL, KernelOf(0)).bytes();
  };
  EXPECT_EQ(Decode(kernel(0, 100)), 1);
  EXPECT_EQ(Decode(kernel(2, 100)), 1);
  EXPECT_EQ(sessions_.back(), 1U);
  EXPECT_EQ(Decode(kernel(0, 200)), 1);
  EXPECT_EQ(Decode(kernel(0, 200)), 0) << "received before";
  EXPECT_EQ(sessions_.back(), 2U);
  EXPECT_EQ(decoder_.DrainDrops().Of(DropReason::kGpuMessagesLost), 1) << "1 of the first";
  EXPECT_EQ(Decode(kernel(1, 100)), 0) << "too late";
  EXPECT_EQ(decoder_.DrainDrops().Of(DropReason::kGpuMessagesLost), 1);
}

TEST_F(DecoderTest, CountsTheLibrarysDropsOnce) {
  gpusonde_gpu_drops drops{};
  drops.counts[GPUSONDE_GPU_DROP_CUPTI] = 5;
  Decode(Batch(GPUSONDE_GPU_STATE, 0).Add(GPUSONDE_GPU_DROPS, drops).bytes());
  drops.counts[GPUSONDE_GPU_DROP_CUPTI] = 7;
  Decode(Batch(GPUSONDE_GPU_STATE, 1).Add(GPUSONDE_GPU_DROPS, drops).bytes());
  EXPECT_EQ(decoder_.DrainDrops().Of(DropReason::kGpuRecordsDropped), 7);
}

TEST_F(DecoderTest, SkipsUnknownRecordTypesAndUnknownTrailingFields) {
  struct LongerKernel {
    gpusonde_gpu_record record;
    std::byte rest[sizeof(gpusonde_gpu_kernel) - sizeof(gpusonde_gpu_record) + 16];
  } longer{};
  const gpusonde_gpu_kernel kernel = KernelOf(0);
  std::memcpy(&longer, &kernel, sizeof kernel);
  EXPECT_EQ(Decode(Batch().Add(999, KernelOf(0)).Add(GPUSONDE_GPU_KERNEL, longer).bytes()), 1);
  EXPECT_EQ(Malformed(), 0);
}

struct Case {
  const char* what;
  std::vector<std::byte> batch;
};

template <class T>
std::vector<std::byte> With(std::vector<std::byte> batch, size_t offset, T value) {
  std::memcpy(batch.data() + offset, &value, sizeof value);
  return batch;
}

TEST_F(DecoderTest, ReadsCollectivesOfAsleepLibrariesAtOnce) {
  gpusonde_gpu_communicator joined{};
  joined.communicator = 0xabc;
  joined.rank = 3;
  joined.ranks = 8;
  std::memcpy(joined.name, "world", 5);
  const std::vector<std::byte> batch = Batch(GPUSONDE_GPU_RECORDS, 0, 0)
                                           .Add(GPUSONDE_GPU_COMMUNICATOR, joined)
                                           .Add(GPUSONDE_GPU_COLLECTIVE, CollectiveCall())
                                           .bytes();
  EXPECT_EQ(Decode(batch,
                   [&](const Event& event) {
                     if (const auto* communicator = std::get_if<Communicator>(&event.what)) {
                       EXPECT_EQ(communicator->communicator, 0xabcU);
                       EXPECT_EQ(communicator->rank, 3);
                       EXPECT_EQ(communicator->ranks, 8);
                       EXPECT_EQ(communicator->name, "world");
                       return;
                     }
                     const auto& call = std::get<Collective>(event.what);
                     EXPECT_EQ(event.tid, 9);
                     EXPECT_EQ(call.sequence, 41);
                     EXPECT_EQ(call.operation, "AllReduce");
                     EXPECT_EQ(call.datatype, std::string(16, 'x'));
                     EXPECT_EQ(call.end_ns, 30);
                     EXPECT_EQ(call.gpu_ns, 0);
                   }),
            2);
}

TEST_F(DecoderTest, CountsAndDiscardsMalformedBatches) {
  const std::vector<std::byte> good = Batch().Add(GPUSONDE_GPU_KERNEL, KernelOf(0)).bytes();
  constexpr size_t kRecord = sizeof(gpusonde_gpu_batch);
  const uint64_t too_late = uint64_t{1} << 63;
  gpusonde_gpu_total total{};
  gpusonde_gpu_total backward{};
  backward.of = GPUSONDE_GPU_KERNEL;
  backward.untimed = 1;
  gpusonde_gpu_call before = CallOf(1);
  before.end_ns = 1;
  gpusonde_gpu_call domain = CallOf(1);
  domain.domain = 3;
  gpusonde_gpu_range kind = RangeOf(0, 0);
  kind.kind = 3;
  gpusonde_gpu_communicator rank{};
  rank.rank = -1;
  gpusonde_gpu_collective uncalled = CollectiveCall();
  uncalled.called_ns = 0;
  gpusonde_gpu_collective ended = CollectiveCall();
  ended.end_ns = 19;
  gpusonde_gpu_collective huge = CollectiveCall();
  huge.sequence = too_late;
  const Case cases[] = {
      {"nothing", {}},
      {"a part of a header", {good.begin(), good.begin() + 20}},
      {"another magic", With(good, 0, uint32_t{0})},
      {"another version", With(good, 4, uint16_t{GPUSONDE_GPU_VERSION + 1})},
      {"another channel", With(good, 6, uint16_t{GPUSONDE_GPU_CHANNELS})},
      {"more bytes than there are", With(good, 8, uint32_t{8000})},
      {"a record of no bytes", With(good, kRecord + 2, uint16_t{0})},
      {"a record of odd bytes", With(good, kRecord + 2, uint16_t{77})},
      {"a record over the end", With(good, kRecord + 2, uint16_t{8000})},
      {"a record shorter than its type", Batch().Add(GPUSONDE_GPU_KERNEL, gpusonde_gpu_sync{}).bytes()},
      {"a time of more than 63 bits", Batch().Add(GPUSONDE_GPU_KERNEL, KernelOf(0, 5, too_late)).bytes()},
      {"a name of number 0", Batch().Add(GPUSONDE_GPU_NAME, Name(0, 1), "x").bytes()},
      {"a name of a huge number", Batch().Add(GPUSONDE_GPU_NAME, Name(1 << 30, 1), "x").bytes()},
      {"a name over its end", Batch().Add(GPUSONDE_GPU_NAME, Name(1, 9), "12345678").bytes()},
      {"a total of nothing", Batch().Add(GPUSONDE_GPU_TOTAL, total).bytes()},
      {"a total of fewer than are untimed", Batch().Add(GPUSONDE_GPU_TOTAL, backward).bytes()},
      {"a call that ends before it begins", Batch().Add(GPUSONDE_GPU_CALL, before).bytes()},
      {"a call of no domain", Batch().Add(GPUSONDE_GPU_CALL, domain).bytes()},
      {"a probability of 0", Batch().Add(GPUSONDE_GPU_CALL, CallOf(0)).bytes()},
      {"a probability above 1", Batch().Add(GPUSONDE_GPU_CALL, CallOf(0x80000001)).bytes()},
      {"a communicator's negative rank", Batch().Add(GPUSONDE_GPU_COMMUNICATOR, rank).bytes()},
      {"a collective that was not called", Batch().Add(GPUSONDE_GPU_COLLECTIVE, uncalled).bytes()},
      {"a collective that ends before it begins", Batch().Add(GPUSONDE_GPU_COLLECTIVE, ended).bytes()},
      {"a collective of a huge number", Batch().Add(GPUSONDE_GPU_COLLECTIVE, huge).bytes()},
      {"a range of no kind", Batch().Add(GPUSONDE_GPU_RANGE, kind).bytes()},
      {"a range's texts over its end", Batch().Add(GPUSONDE_GPU_RANGE, RangeOf(5, 65535), "12345").bytes()},
  };
  for (const Case& bad : cases) {
    decoder_ = {};
    EXPECT_EQ(Decode(bad.batch), 0) << bad.what;
    EXPECT_EQ(Malformed(), 1) << bad.what;
  }
}

// Joining a session that began earlier, with the snapshot that the library sends on request.
class Joining : public DecoderTest {
 protected:
  Joining() { decoder_ = Decoder(true); }

  static std::vector<std::byte> Records(uint64_t sequence, uint32_t name = 3) {
    return Batch(GPUSONDE_GPU_RECORDS, sequence).Add(GPUSONDE_GPU_KERNEL, KernelOf(name)).bytes();
  }
  static Batch SnapshotBegin(uint64_t sequence) {
    gpusonde_gpu_snapshot_begin begin{};
    begin.begin_ns = 1000;
    begin.since_ns = 5000;
    return Batch(GPUSONDE_GPU_SNAPSHOT, sequence).Add(GPUSONDE_GPU_SNAPSHOT_BEGIN, begin);
  }
  static gpusonde_gpu_total TotalOf(uint64_t count) {
    gpusonde_gpu_total total{};
    total.of = GPUSONDE_GPU_KERNEL;
    total.key = 3;
    total.count = count;
    return total;
  }
  void Take(const std::vector<std::byte>& batch) {
    Decode(batch, [this](const Event& event) { Describe(event); });
  }
  void Describe(const Event& event) {
    if (const auto* kernel = std::get_if<Kernel>(&event.what))
      seen_.push_back("kernel " + std::string(kernel->name));
    if (const auto* begin = std::get_if<SessionBegin>(&event.what))
      seen_.push_back("since " + std::to_string(begin->begin_ns) + (begin->joined ? " joined" : ""));
    if (const auto* total = std::get_if<Total>(&event.what))
      seen_.push_back(std::to_string(total->count) + " " + std::string(total->name) +
                      (total->joined ? " earlier" : ""));
  }

  std::vector<std::string> seen_;
};

TEST_F(Joining, HoldsRecordsUntilASnapshotHasTheirNames) {
  Take(Records(10));
  EXPECT_THAT(seen_, ::testing::IsEmpty());
  EXPECT_THAT(decoder_.Holding(), ::testing::ElementsAre(kPid));
  Take(SnapshotBegin(0)
           .Add(GPUSONDE_GPU_NAME, Name(3, 5), "alpha")
           .Add(GPUSONDE_GPU_SNAPSHOT_END, gpusonde_gpu_snapshot_end{})
           .Add(GPUSONDE_GPU_TOTAL, TotalOf(7))
           .Add(GPUSONDE_GPU_DROPS, gpusonde_gpu_drops{.record = {}, .padding = 0, .counts = {100}})
           .bytes());
  Take(Records(11));
  Take(Batch(GPUSONDE_GPU_STATE).Add(GPUSONDE_GPU_TOTAL, TotalOf(9)).bytes());
  EXPECT_THAT(seen_, ::testing::ElementsAre("since 5000 joined", "kernel alpha", "7 alpha earlier",
                                            "kernel alpha", "9 alpha"));
  EXPECT_THAT(decoder_.Holding(), ::testing::IsEmpty());
  EXPECT_EQ(decoder_.DrainDrops().Of(DropReason::kGpuRecordsDropped), 0) << "those were dropped before";
}

TEST_F(Joining, IgnoresAnIncompleteSnapshot) {
  Take(Records(10));
  Take(SnapshotBegin(0).bytes());
  Take(Batch(GPUSONDE_GPU_SNAPSHOT, 2).Add(GPUSONDE_GPU_SNAPSHOT_END, gpusonde_gpu_snapshot_end{}).bytes());
  EXPECT_THAT(decoder_.Holding(), ::testing::SizeIs(1));
  decoder_.Release([this](const Event& event) { Describe(event); });
  EXPECT_THAT(seen_, ::testing::ElementsAre("since 5000 joined", "kernel "));
  EXPECT_EQ(decoder_.DrainDrops().Of(DropReason::kGpuNameLost), 1);
}

TEST_F(Joining, HoldsNothingOfASessionReceivedFromItsBegin) {
  Take(Batch(GPUSONDE_GPU_STATE).Add(GPUSONDE_GPU_SESSION_BEGIN, gpusonde_gpu_session_begin{}).bytes());
  Take(Records(0, GPUSONDE_GPU_OTHER_NAME));
  Take(SnapshotBegin(0).bytes());
  EXPECT_THAT(seen_, ::testing::ElementsAre("since 0", "kernel ")) << "a snapshot for another consumer";
  // A name was lost in transit: the next records wait for it.
  Take(Records(1));
  Take(Records(2));
  EXPECT_THAT(decoder_.Holding(), ::testing::SizeIs(1));
}

TEST_F(Joining, DropsAndCountsWhatIsHeldOfAProcessThatHasEnded) {
  Take(Records(10));
  decoder_.Decode({.pid = kPid + 1}, Records(10), [this](const Event& event) { Describe(event); });
  decoder_.ForgetEnded(decoder_.Holding(), [](int32_t pid) { return pid != kPid; });
  EXPECT_THAT(decoder_.Holding(), ::testing::ElementsAre(kPid + 1));
  EXPECT_EQ(decoder_.processes(), 1u);
  EXPECT_EQ(decoder_.DrainDrops().Of(DropReason::kGpuMessagesLost), 1);
}

TEST_F(Joining, CountsHeldRecordsAsLostWhenTheProcessIsForgotten) {
  Take(Records(0));
  decoder_.Forget(kPid);
  EXPECT_EQ(decoder_.DrainDrops().Of(DropReason::kGpuMessagesLost), 1);
}

gpusonde_gpu_overhead OverheadOf(int32_t cost, int32_t low, int32_t high) {
  gpusonde_gpu_overhead overhead{};
  overhead.pairs = 9;
  overhead.time_ns = 7;
  overhead.budget = 5000;
  overhead.spent = 4900;
  overhead.measured = 1200;
  overhead.known = 1;
  overhead.cost = cost;
  overhead.cost_low = low;
  overhead.cost_high = high;
  return overhead;
}

TEST_F(DecoderTest, DecodesTheProfilingOverhead) {
  std::vector<Overhead> decoded;
  uint64_t sequence = 0;
  const auto decode = [&](const gpusonde_gpu_overhead& wire) {
    Decode(Batch(GPUSONDE_GPU_STATE, sequence++).Add(GPUSONDE_GPU_OVERHEAD, wire).bytes(),
           [&](const Event& event) {
             if (const auto* overhead = std::get_if<Overhead>(&event.what)) decoded.push_back(*overhead);
           });
  };
  decode(OverheadOf(21'000, -500, 40'000));
  ASSERT_EQ(decoded.size(), 1U);
  EXPECT_EQ(decoded[0].pairs, 9U);
  EXPECT_EQ(decoded[0].time_ns, 7);
  EXPECT_DOUBLE_EQ(decoded[0].budget, 0.005);
  EXPECT_DOUBLE_EQ(decoded[0].spent, 0.0049);
  EXPECT_DOUBLE_EQ(decoded[0].measured, 0.0012);
  EXPECT_TRUE(decoded[0].known);
  EXPECT_DOUBLE_EQ(decoded[0].cost, 0.021);
  EXPECT_DOUBLE_EQ(decoded[0].cost_low, -0.0005);
  EXPECT_DOUBLE_EQ(decoded[0].cost_high, 0.04);
  decode(OverheadOf(21'000, 22'000, 40'000));
  decode(OverheadOf(21'000, 0, 2'000'000'000));
  EXPECT_EQ(decoded.size(), 1U);
  EXPECT_EQ(Malformed(), 2);
}

TEST_F(DecoderTest, SurvivesAnyBytes) {
  std::mt19937_64 random(7);
  const std::vector<std::byte> good = Batch()
                                          .Add(GPUSONDE_GPU_NAME, Name(1, 5), "alpha")
                                          .Add(GPUSONDE_GPU_KERNEL, KernelOf(1))
                                          .Add(GPUSONDE_GPU_CALL, CallOf(77))
                                          .Add(GPUSONDE_GPU_RANGE, RangeOf(3, 2), "abcde")
                                          .Add(GPUSONDE_GPU_MEMCPY, gpusonde_gpu_memcpy{})
                                          .Add(GPUSONDE_GPU_DEVICE, gpusonde_gpu_device{})
                                          .Add(GPUSONDE_GPU_TOTAL, gpusonde_gpu_total{})
                                          .Add(GPUSONDE_GPU_FOREIGN, gpusonde_gpu_foreign{})
                                          .Add(GPUSONDE_GPU_COLLECTIVE, CollectiveCall())
                                          .Add(GPUSONDE_GPU_OVERHEAD, OverheadOf(3, 2, 4))
                                          .bytes();
  size_t read = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::vector<std::byte> batch = With(good, offsetof(gpusonde_gpu_batch, sequence), uint64_t{random()});
    for (uint64_t changes = random() % 8; changes > 0; --changes)
      batch[random() % batch.size()] = static_cast<std::byte>(random());
    batch.resize(round % 2 == 0 ? batch.size() : random() % (batch.size() + 1));
    const auto bytes = static_cast<uint32_t>(batch.size());
    if (round % 3 == 0 && bytes >= 12)
      batch = With(std::move(batch), offsetof(gpusonde_gpu_batch, bytes), bytes);
    if (round % 100 == 0) decoder_.Forget(kPid);
    // Every text of an event must be readable.
    Decode(batch, [&](const Event& event) {
      if (const auto* kernel = std::get_if<Kernel>(&event.what)) read += kernel->name.size();
      if (const auto* range = std::get_if<Range>(&event.what))
        for (const char c : range->text) read += static_cast<size_t>(c) & 1;
      if (const auto* device = std::get_if<Device>(&event.what)) read += device->name.size();
      if (const auto* call = std::get_if<Collective>(&event.what))
        for (const char c : call->operation) read += static_cast<size_t>(c) & 1;
    });
  }
  EXPECT_GT(read, 0U);
  EXPECT_GT(Malformed(), 0);
}

}  // namespace
}  // namespace gpusonde::cupti
