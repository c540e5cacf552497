// SPDX-License-Identifier: Apache-2.0
// The memory of a process that claims to run Python: the first byte selects the version, the next ones the
// address of the code object.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>

#include "symbols/python_code.h"

namespace {

// Addresses begin at 0 and end with the input.
class Image : public gpusonde::symbols::Memory {
 public:
  explicit Image(std::span<const uint8_t> bytes) : bytes_(bytes) {}
  bool Read(uint64_t address, std::span<std::byte> out) const override {
    if (address > bytes_.size() || out.size() > bytes_.size() - address) return false;
    std::ranges::copy(std::as_bytes(bytes_.subspan(address, out.size())), out.begin());
    return true;
  }

 private:
  std::span<const uint8_t> bytes_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace symbols = gpusonde::symbols;
  if (size < 2) return 0;
  const symbols::PythonLayout& layout = *symbols::FindPythonLayout(0x0309u + data[0] % 5);
  const uint64_t address = data[1];
  const Image memory(std::span(data, size).subspan(2));
  // As the eBPF program would have computed it, so that the check passes.
  const auto name = memory.ReadAs<uint64_t>(address + layout.walk.code_name);
  const auto file = memory.ReadAs<uint64_t>(address + layout.walk.code_file);
  const auto line = memory.ReadAs<uint32_t>(address + layout.walk.code_first_line);
  const uint32_t check = gpusonde_python_check(name.value_or(0), file.value_or(0), line.value_or(0));
  const auto code = symbols::ReadPythonCode(memory, layout, 0, address, check);
  if (!code.has_value()) return 0;
  if (code->name.size() > 4 * size || code->line_table.size() > size)
    std::abort();  // more than the input has
  for (uint32_t instruction = 0; instruction < 512; ++instruction) (void)code->LineOf(instruction);
  return 0;
}
