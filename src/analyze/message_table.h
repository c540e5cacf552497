// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "importers/event.h"

namespace gpusonde::analyze {

// What the communication kernels of a trace moved, as far as it says: the first kMaxMessages by start. Which
// are kept doesn't depend on the order in which they are added.
class MessageTable {
 public:
  static constexpr size_t kMaxMessages = 262'144;  // 12 MiB; up to twice as many until Finish

  void Add(std::span<const importers::Message> messages);
  void Merge(const MessageTable& other);
  // Reduces to the bound, and sorts.
  void Finish();

  // Requires Finish. That of a kernel, by its times, process, device and stream; null if unknown. Takes the
  // logarithm of the number of messages.
  const importers::Message* Find(const importers::Message& kernel) const;
  // Kernels with a size that is impossible or of elements of an unknown type.
  int64_t invalid() const { return invalid_; }
  // Messages that were left out.
  int64_t beyond_bound() const { return beyond_bound_; }

  template <class Archive>
  void Transfer(Archive& archive) {
    archive(messages_);
    archive(invalid_);
    archive(beyond_bound_);
  }

 private:
  struct Entry {
    importers::Message message;

    template <class Archive>
    void Transfer(Archive& archive) {
      archive(message.start_ns);
      archive(message.end_ns);
      archive(message.process);
      archive(message.device);
      archive(message.stream);
      archive(message.bytes);
      archive(message.operation);
      archive.Require(message.bytes > 0 && message.bytes <= importers::Message::kMaxBytes &&
                      message.operation <= importers::Operation::kSendReceive);
    }
    auto operator<=>(const Entry&) const = default;
  };
  void Reduce();

  std::vector<Entry> messages_;
  int64_t invalid_ = 0;
  int64_t beyond_bound_ = 0;
};

}  // namespace gpusonde::analyze
