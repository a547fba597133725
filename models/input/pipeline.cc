#include "models/input/pipeline.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace rehearse::input {

Seconds ServiceTime::draw(Random& random) const {
  if (samples.size() > 1) return samples[random.below(static_cast<std::uint32_t>(samples.size()))];
  if (exponential > 0) return mean * (1 - exponential + exponential * random.exponential());
  if (lognormal > 0) {
    const double variance = std::log1p(lognormal * lognormal);  // of the logarithm
    return mean * std::exp(std::sqrt(variance) * random.normal() - variance / 2);
  }
  return mean;
}

Seconds ServiceTime::least() const {
  if (!samples.empty()) return *std::ranges::min_element(samples);
  constexpr double kRare = 3e-5, kRareDeviations = 4;
  if (lognormal == 0) return mean * (1 - exponential + exponential * kRare);
  const double variance = std::log1p(lognormal * lognormal);  // of the logarithm
  return mean * std::exp(-kRareDeviations * std::sqrt(variance) - variance / 2);
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
  // In a round all samples begin, and those of the batch are used.
  const bool rounds = pipeline.loop && pipeline.loop->rounds();
  double takes = 1.0 / stages.back().split;
  for (std::size_t i = stages.size(); i-- > 0;) {
    counts.takes[i] = takes;
    counts.visits[i] = takes * stages[i].visits;
    double units = takes * stages[i].batch;  // of the stage before
    if (!rounds || i + 1 == stages.size()) counts.samples = std::max(counts.samples, units);
    if (rounds && i + 1 == stages.size()) units = static_cast<double>(pipeline.loop->in_flight);
    if (i > 0) takes = units / stages[i - 1].split;
  }
  return counts;
}

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

Seconds locked_time(const Pipeline& pipeline, const Stage& stage) {
  if (!stage.source) return stage.serial.mean;
  return stage.serial.mean +
         requests_of(pipeline, stage) * pipeline.sources[*stage.source].client_serial.mean;
}

Seconds core_time(const Pipeline& pipeline, const Stage& stage) {
  const Seconds own = stage.time.mean + locked_time(pipeline, stage);
  if (!stage.source) return own;
  return own + requests_of(pipeline, stage) * pipeline.sources[*stage.source].client.mean;
}

Seconds hold_time(const Pipeline& pipeline, const Stage& stage) {
  return core_time(pipeline, stage) + read_time(pipeline, stage);
}

namespace {

/// The number of concurrently working threads if each works at this speed.
double working_at(const Pipeline& pipeline, double speed) {
  const std::vector<Stage>& stages = pipeline.stages;
  std::vector<std::pair<double, double>> busy;  // samples that a thread holds, and such threads
  const Counts counts = counts_of(pipeline);
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const Stage& stage = stages[i];
    const Seconds work = core_time(pipeline, stage) / speed;
    if (!(work.s() > 0)) continue;
    const double working = stage.slots() * (work / (work + read_time(pipeline, stage)));
    // A lock lets only one thread of a worker at a time do the work that it protects.
    const Seconds lock = locked_time(pipeline, stage);
    const double locked =
        lock.s() > 0 ? stage.workers * (core_time(pipeline, stage) / lock) : working;
    // The visits of a take run concurrently.
    busy.emplace_back(counts.samples / (counts.takes[i] * std::max(stage.visits, 1.0)),
                      std::min(working, locked));
  }
  // Late samples of a round that continue are in flight during the next one.
  const bool closed = pipeline.loop && pipeline.loop->late != Late::kFinished;
  double left = closed ? static_cast<double>(pipeline.loop->in_flight) : HUGE_VAL;
  std::ranges::sort(busy);
  double sum = 0;
  for (const auto& [samples, threads] : busy) {
    const double now = std::min(threads, left / samples);
    left -= now * samples;
    sum += now;
  }
  return sum;
}

}  // namespace

double least_in_flight(const Pipeline& pipeline) {
  const std::vector<Stage>& stages = pipeline.stages;
  double units = 1, takes = 1;
  for (std::size_t i = stages.size(); i-- > 0;) {
    takes = std::ceil(units / stages[i].split - 1e-9);
    units = takes * stages[i].batch + stages[i].shuffle;
  }
  const Counts counts = counts_of(pipeline);
  return takes * counts.samples / counts.takes.front();
}

double busy_threads(const Pipeline& pipeline) {
  double busy = working_at(pipeline, 1);
  if (!pipeline.host) return busy;
  // With more work each thread is slower, and more of the threads that also wait are working. This
  // number grows from one iteration to the next, towards at most all threads.
  constexpr int kRounds = 50;
  for (int round = 0; round < kRounds; ++round) {
    const double before =
        std::exchange(busy, working_at(pipeline, pipeline.host->shared_speed(busy)));
    if (busy <= before * (1 + 1e-9)) break;
  }
  return busy;
}

std::uint32_t threads_on_cores(const Pipeline& pipeline, const Stage& stage) {
  return core_time(pipeline, stage).s() > 0 ? stage.slots() : 0;
}

std::vector<double> part_capacities(const Pipeline& pipeline) {
  const Host& host = *pipeline.host;
  const double busy = busy_threads(pipeline);
  if (host.parts() == 1) return {host.capacity(std::max<double>(busy, host.cores))};
  std::uint32_t threads = 0;
  for (const Stage& stage : pipeline.stages) threads += threads_on_cores(pipeline, stage);
  const double cores = static_cast<double>(host.cores) / host.parts();
  std::vector<double> capacities;
  for (std::uint32_t part = 0; part < host.parts(); ++part) {
    const std::uint32_t here = threads / host.parts() + (part < threads % host.parts() ? 1 : 0);
    const double second = std::clamp(here / cores - 1, 0.0, 1.0);
    capacities.push_back(cores * host.speed(busy) * (1 + (host.smt - 1) * second));
  }
  return capacities;
}

}  // namespace rehearse::input
