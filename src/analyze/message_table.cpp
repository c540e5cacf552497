// SPDX-License-Identifier: Apache-2.0
#include "analyze/message_table.h"

#include <algorithm>
#include <tuple>

namespace gpusonde::analyze {
namespace {

using importers::Message;

auto KernelOf(const Message& message) {
  return std::tuple(message.start_ns, message.end_ns, message.process, message.device, message.stream);
}

}  // namespace

void MessageTable::Add(std::span<const Message> messages) {
  for (const Message& message : messages) {
    if (message.bytes == Message::kInvalid) {
      ++invalid_;
      continue;
    }
    messages_.push_back({message});
    if (messages_.size() >= 2 * kMaxMessages) Reduce();
  }
}

void MessageTable::Merge(const MessageTable& other) {
  messages_.insert(messages_.end(), other.messages_.begin(), other.messages_.end());
  Reduce();
  invalid_ += other.invalid_;
  beyond_bound_ += other.beyond_bound_;
}

void MessageTable::Reduce() {
  if (messages_.size() <= kMaxMessages) return;
  std::ranges::nth_element(messages_, messages_.begin() + static_cast<std::ptrdiff_t>(kMaxMessages));
  beyond_bound_ += static_cast<int64_t>(messages_.size() - kMaxMessages);
  messages_.resize(kMaxMessages);
}

void MessageTable::Finish() {
  Reduce();
  std::ranges::sort(messages_);
  messages_.shrink_to_fit();
}

const Message* MessageTable::Find(const Message& kernel) const {
  const auto found = std::ranges::lower_bound(messages_, KernelOf(kernel), {},
                                              [](const Entry& entry) { return KernelOf(entry.message); });
  return found != messages_.end() && KernelOf(found->message) == KernelOf(kernel) ? &found->message : nullptr;
}

}  // namespace gpusonde::analyze
