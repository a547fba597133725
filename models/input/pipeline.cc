#include "models/input/pipeline.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace rehearse::input {

Seconds ServiceTime::draw(store::Random& random) const {
  if (samples.size() > 1) return samples[random.below(static_cast<std::uint32_t>(samples.size()))];
  if (exponential > 0) return mean * (1 - exponential + exponential * random.exponential());
  if (lognormal > 0) {
    const double variance = std::log1p(lognormal * lognormal);  // of the logarithm
    return mean * std::exp(std::sqrt(variance) * random.normal() - variance / 2);
  }
  return mean;
}

double Host::speed(double busy) const {
  if (cores <= 1 || busy <= 1) return 1;
  return 1 - (1 - loaded) * (std::min<double>(busy, cores) - 1) / (cores - 1);
}

double Host::capacity(double busy) const {
  const double full = cores * speed(cores);
  if (busy <= cores) return busy * speed(busy);
  return full * (1 + (smt - 1) * std::min(busy / cores - 1, 1.0));
}

double Host::shared_speed(double busy) const {
  if (busy <= cores) return speed(busy);
  return capacity(busy) / std::min(busy, 2.0 * cores);
}

Counts counts_of(const Pipeline& pipeline) {
  const std::vector<Stage>& stages = pipeline.stages;
  Counts counts{.takes = std::vector<double>(stages.size(), 1),
                .visits = std::vector<double>(stages.size(), 1),
                .samples = 1};
  double takes = 1.0 / stages.back().split;
  counts.samples = 1;
  for (std::size_t i = stages.size(); i-- > 0;) {
    counts.takes[i] = takes;
    counts.visits[i] = takes * stages[i].visits;
    const double units = takes * stages[i].batch;  // of the stage before
    counts.samples = std::max(counts.samples, units);
    if (i > 0) takes = units / stages[i - 1].split;
  }
  return counts;
}

Seconds core_time(const Stage& stage) { return stage.time.mean + stage.serial.mean; }

double requests_of(const Source& source, const Stage& stage, Bytes read) {
  const double least = stage.reads.empty() || read.b() > 0 ? 1 : 0;
  return source.request ? std::max(std::ceil(read / *source.request), least) : least;
}

double requests_of(const Pipeline& pipeline, const Stage& stage) {
  if (!stage.source) return 0;
  const Source& source = pipeline.sources[*stage.source];
  if (stage.reads.empty()) return (1 - source.hits) * requests_of(source, stage, stage.bytes);
  double requests = 0;
  for (const Bytes read : stage.reads) requests += requests_of(source, stage, read);
  return (1 - source.hits) * requests / static_cast<double>(stage.reads.size());
}

Bytes moved_by(const Pipeline& pipeline, const Stage& stage) {
  if (!stage.source) return Bytes::b(0);
  return stage.bytes * (1 - pipeline.sources[*stage.source].hits);
}

Seconds read_time(const Pipeline& pipeline, const Stage& stage) {
  if (!stage.source) return Seconds::s(0);
  const Source& source = pipeline.sources[*stage.source];
  Seconds time = requests_of(pipeline, stage) * source.latency.mean;
  std::optional<ByteRate> rate = source.connection;
  if (source.total && (!rate || *source.total < *rate)) rate = source.total;
  if (rate) time += moved_by(pipeline, stage) / *rate;
  if (source.memory) time += stage.bytes * source.hits / *source.memory;
  return time;
}

Seconds hold_time(const Pipeline& pipeline, const Stage& stage) {
  return core_time(stage) + read_time(pipeline, stage);
}

namespace {

/// Threads that work at a time where each works at this speed.
double working_at(const Pipeline& pipeline, double speed) {
  double busy = 0;
  for (const Stage& stage : pipeline.stages) {
    const Seconds work = core_time(stage) / speed;
    if (!(work.s() > 0)) continue;
    const double working = stage.slots() * (work / (work + read_time(pipeline, stage)));
    // A lock lets one of the threads of a worker work on what it protects.
    const double locked = stage.serial.mean.s() > 0
                              ? stage.workers * (core_time(stage) / stage.serial.mean)
                              : working;
    busy += std::min(working, locked);
  }
  return busy;
}

}  // namespace

double busy_threads(const Pipeline& pipeline) {
  double busy = working_at(pipeline, 1);
  if (!pipeline.host) return busy;
  // The more work, the slower each, and the more of what also waits are at work. That grows from
  // one round to the next, towards no more than all threads.
  constexpr int kRounds = 50;
  for (int round = 0; round < kRounds; ++round) {
    const double before =
        std::exchange(busy, working_at(pipeline, pipeline.host->shared_speed(busy)));
    if (busy <= before * (1 + 1e-9)) break;
  }
  return busy;
}

}  // namespace rehearse::input
