// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace gpusonde::importers::kineto {

// Which threads of a trace by XLA's profiler (JAX, TensorFlow) are streams of GPUs, and which processes are
// hosts: events of such traces have no categories. GPUs are processes named "/device:GPU:0", whose threads
// are streams ("Stream #14(Compute,MemcpyD2H)") and lines that XLA derives from them ("XLA Ops"); hosts are
// "/host:CPU". Written after what other readers of such traces say, not yet tested with a real one.
class XlaTracks {
 public:
  struct Stream {
    std::string device;  // numbers as text, as JSON has them
    std::string number;
  };

  // Whether a trace that begins like this may be one of XLA: it names a GPU, or has only metadata so far.
  static bool MayBeIn(std::string_view begin);

  // Learns from the metadata in a JSON array of events, which precedes all others in such traces. Other
  // traces cost a search for a name of a GPU.
  void Learn(std::string_view events);

  bool empty() const { return streams_.empty(); }
  // Null if that thread is no stream. Valid as long as this.
  const Stream* FindStream(int64_t pid, int64_t tid) const;
  bool IsHost(int64_t pid) const { return hosts_.contains(pid); }

 private:
  std::map<std::pair<int64_t, int64_t>, Stream> streams_;  // by process and thread
  std::set<int64_t> hosts_;
};

}  // namespace gpusonde::importers::kineto
