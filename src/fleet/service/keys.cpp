// SPDX-License-Identifier: Apache-2.0
#include "fleet/service/keys.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sodium.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/little_endian.h"
#include "base/text.h"
#include "fleet/privacy/random.h"

namespace gpusonde::fleet {
namespace {

constexpr std::string_view kKeyTitle = "gpusonde fleet key 1";
constexpr std::string_view kTicketTitle = "gpusonde fleet ticket 1";
constexpr size_t kMaxKeyFileBytes = 4096;

// The words of a file of one line, the first of which are its title. They hold secrets: the caller wipes
// them.
Result<std::vector<std::string>> ReadWords(const std::string& path, std::string_view title, size_t count) {
  ASSIGN_OR_RETURN(std::string text, ReadFile(path, kMaxKeyFileBytes));
  std::vector<std::string> words;
  if (text.starts_with(title) && text.ends_with('\n')) {
    size_t begin = title.size() + 1;
    while (begin < text.size()) {
      const size_t end = text.find_first_of(" \n", begin);
      words.push_back(text.substr(begin, end - begin));
      begin = end + 1;
    }
  }
  sodium_memzero(text.data(), text.size());
  if (words.size() != count)
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{} is not a file that begins with '{}'", path, title));
  return words;
}

void Wipe(std::vector<std::string>& words) {
  for (std::string& word : words) sodium_memzero(word.data(), word.size());
}

std::vector<uint8_t> TicketBytes(const FleetId& fleet, uint64_t device, const VerifyKey& key) {
  std::vector<uint8_t> bytes(kTicketTitle.begin(), kTicketTitle.end());
  bytes.insert(bytes.end(), fleet.begin(), fleet.end());
  AppendLittleEndian(bytes, device);
  bytes.insert(bytes.end(), key.begin(), key.end());
  return bytes;
}

}  // namespace

std::string DeviceName(uint64_t device) { return fmt::format("{:016x}", device); }

Status WriteSecretFile(const std::string& path, std::string_view content) {
  Result<Fd> file = Open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
  if (!file.has_value() && errno == EEXIST)
    return Fail(ErrorCode::kInvalidArgument, fmt::format("{} exists; give another name, or remove it", path));
  if (!file.has_value()) return Fail(std::move(file).error());
  Status written = WriteAll(file->get(), std::as_bytes(std::span(content)));
  if (!written.has_value()) written = Fail(std::move(written).error().With(path));
  if (written.has_value() && ::fsync(file->get()) != 0) written = Fail(ErrnoError(errno, "write " + path));
  if (written.has_value()) written = SyncFolderOf(path);
  // A part of a secret is none, and would be in the way of another try.
  if (!written.has_value()) ::unlink(path.c_str());
  return written;
}

Result<VerifyKey> MakeKeyFile(const std::string& path) {
  privacy::Wiped<uint8_t> seed(privacy::kKeyBytes);
  privacy::Random::FromSystem().Fill(seed.values());
  std::string text = fmt::format("{} {}\n", kKeyTitle, ToHex(seed.values()));
  const Status written = WriteSecretFile(path, text);
  sodium_memzero(text.data(), text.size());
  TRY(written);
  return SigningKey(privacy::KeyBytes(seed.values())).open();
}

Result<SigningKey> ReadKeyFile(const std::string& path) {
  ASSIGN_OR_RETURN(std::vector<std::string> words, ReadWords(path, kKeyTitle, 1));
  privacy::Wiped<uint8_t> seed(privacy::kKeyBytes);
  const bool is_key = FromHex(words[0], seed.values());
  Wipe(words);
  if (!is_key) return Fail(ErrorCode::kInvalidArgument, path + " has no key of 64 hex digits");
  return SigningKey(privacy::KeyBytes(seed.values()));
}

void SignTicket(Ticket& ticket, const SigningKey& authority) {
  const SigningKey key(privacy::KeyBytes(ticket.seed.values()));
  ticket.signature = authority.Sign(TicketBytes(ticket.fleet, ticket.device, key.open()));
}

Ticket MakeTicket(const FleetId& fleet, const SigningKey& authority) {
  Ticket ticket{.fleet = fleet};
  privacy::Random random = privacy::Random::FromSystem();
  ticket.device = random.Next();
  random.Fill(ticket.seed.values());
  SignTicket(ticket, authority);
  return ticket;
}

Status WriteTicket(const std::string& path, const Ticket& ticket) {
  std::string text =
      fmt::format("{} {} {} {} {}\n", kTicketTitle, ToHex(ticket.fleet), DeviceName(ticket.device),
                  ToHex(ticket.seed.values()), ToHex(ticket.signature));
  Status written = WriteSecretFile(path, text);
  sodium_memzero(text.data(), text.size());
  return written;
}

Result<Ticket> ReadTicket(const std::string& path) {
  ASSIGN_OR_RETURN(std::vector<std::string> words, ReadWords(path, kTicketTitle, 4));
  Ticket ticket;
  std::array<uint8_t, sizeof(uint64_t)> device{};
  const bool is_ticket = FromHex(words[0], ticket.fleet) && FromHex(words[1], device) &&
                         FromHex(words[2], ticket.seed.values()) && FromHex(words[3], ticket.signature);
  Wipe(words);
  if (!is_ticket)
    return Fail(ErrorCode::kInvalidArgument, path + " is not a ticket of `gpusonde fleet enrol`");
  for (const uint8_t byte : device) ticket.device = ticket.device << 8 | byte;
  return ticket;
}

bool IsAdmitted(const FleetId& fleet, uint64_t device, const VerifyKey& key, const Signature& signature,
                const VerifyKey& authority) {
  std::vector<uint8_t> bytes = TicketBytes(fleet, device, key);
  bytes.insert(bytes.end(), signature.begin(), signature.end());
  return IsSigned(bytes, authority);
}

}  // namespace gpusonde::fleet
