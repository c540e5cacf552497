// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "fleet/privacy/bfv_decryptor.h"
#include "fleet/privacy/decryptor.h"
#include "fleet/roles/device.h"
#include "fleet/roles/enrolment.h"
#include "fleet/simulator/simulator.h"

namespace gpusonde::fleet {

// The devices of a simulated fleet and its decryptors, enrolled with each other.
class SimulatedFleet {
 public:
  static Result<SimulatedFleet> Create(const Parameters& parameters, ReportKind kind, uint32_t epoch,
                                       const Progress& progress);

  size_t size() const { return devices_.size(); }
  Device& device(size_t place) { return *devices_[place]; }
  const Directory& directory() const { return directory_; }
  const privacy::PublicKey& joint_key() const { return joint_; }
  std::vector<privacy::MaskDecryptor>& mask_decryptors() { return mask_decryptors_; }
  std::vector<privacy::BfvDecryptor>& bfv_decryptors() { return bfv_decryptors_; }

  // The noise in a decryptor's answer for a list, which only a simulation may know.
  std::vector<int64_t> NoiseIn(size_t decryptor, const privacy::ReportList& list) const;

  // Replaces devices by new ones with new ids from this epoch on.
  Status Replace(std::span<const size_t> places, uint32_t epoch);
  // Expels a device: its reports are no longer accepted. Returns its place.
  size_t Expel(uint64_t device);

  uint64_t enrolled() const { return next_id_ - 1; }
  int64_t enrol_ns() const { return enrol_ns_; }

 private:
  SimulatedFleet(const Parameters& parameters, ReportKind kind, uint32_t epoch);
  Status Enrol(std::span<const size_t> places, uint32_t epoch, const Progress& progress);

  Parameters parameters_;
  ReportKind kind_;
  uint32_t first_epoch_;
  std::vector<std::unique_ptr<Device>> devices_;
  std::unordered_map<uint64_t, size_t> places_;
  Directory directory_;
  std::vector<privacy::MaskDecryptor> mask_decryptors_;
  std::vector<privacy::BfvDecryptor> bfv_decryptors_;
  privacy::PublicKey joint_;
  uint64_t next_id_ = 1;
  int64_t enrol_ns_ = 0;
};

}  // namespace gpusonde::fleet
