#include "models/store/drive.h"

namespace rehearse::store {

Seconds read_time(const Traffic& traffic, const Drive& drive, std::size_t first) {
  double requests = 0, units = 0;
  for (std::size_t b = first; b < traffic.batches.size(); ++b) {
    const BatchTraffic& batch = traffic.batches[b];
    requests += static_cast<double>(batch.misses + batch.fills);
    units += static_cast<double>(batch.reads + batch.fills);
  }
  return drive.latency * requests + drive.unit * units / drive.rate;
}

}  // namespace rehearse::store
