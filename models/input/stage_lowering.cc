#include "models/input/stage_lowering.h"

#include <algorithm>
#include <cmath>

namespace rehearse::input {

using program::Stream;
using program::Task;

namespace {

Stream on_host(NameId name, std::uint32_t slots) {
  return {.name = name, .kind = Stream::Kind::kHost, .slots = slots};
}

}  // namespace

Picoseconds whole(Seconds time) { return Picoseconds::from(std::min(time, Seconds::s(1e5))); }

Resources add_resources(const Pipeline& pipeline, NamePool& names, RankBuilder& builder) {
  Resources resources;
  if (const auto& host = pipeline.host) {
    const double busy = busy_threads(pipeline);
    resources.core_speed = host->speed(busy);
    for (const double rate : part_capacities(pipeline))
      resources.cores.push_back(
          builder.add(program::Pool{.name = names.intern("host cores"), .rate = rate}));
  }
  for (const Source& source : pipeline.sources) {
    const NameId name = names.intern(source.name);
    resources.bandwidth.emplace_back();
    if (source.total)
      resources.bandwidth.back() =
          builder.add(program::Pool{.name = name, .rate = source.total->bytes_per_s()});
    resources.admission.emplace_back();
    if (source.requests_per_s) resources.admission.back() = builder.add(on_host(name, 1));
  }
  return resources;
}

StageLowering::StageLowering(const Pipeline& pipeline, std::size_t index, bool spread,
                             const Resources& resources, NamePool& names, RankBuilder& builder)
    : pipeline_(pipeline),
      stage_(pipeline.stages[index]),
      source_(stage_.source ? &pipeline.sources[*stage_.source] : nullptr),
      resources_(resources),
      builder_(builder),
      random_(random_stream(pipeline.seed, index)),
      name_(names.intern(stage_.name)),
      first_thread_(0) {
  for (std::size_t i = 0; i < index; ++i)
    first_thread_ += threads_on_cores(pipeline, pipeline.stages[i]);
  parts_.admitted = source_ && source_->requests_per_s;
  parts_.read = source_ != nullptr;
  parts_.serial = locked_time(pipeline, stage_).s() > 0;
  const Seconds work = core_time(pipeline, stage_) - locked_time(pipeline, stage_);
  // Without a shared host, work is a plain duration and is merged with the read.
  parts_.work = (work.s() > 0 && (!resources.cores.empty() || !parts_.read)) ||
                !(parts_.read || parts_.serial);
  pooled_ = parts_.count() == 1 && !parts_.serial;
  add_resources();
  add_start(spread);
}

void StageLowering::free_workers() {
  work_streams_.clear();
  add_resources();
}

StageLowering::Take StageLowering::add_take(std::uint64_t take, const std::vector<OpIndex>& after) {
  const auto visits_before = [&](std::uint64_t k) {
    return static_cast<std::uint64_t>(std::floor(static_cast<double>(k) * stage_.visits + 1e-9));
  };
  const std::uint64_t count = visits_before(take + 1) - visits_before(take);
  if (count == 1) return add_visit(after);
  const OpIndex begin = builder_.add(instant(name_), after);
  std::vector<OpIndex> ends;
  for (std::uint64_t i = 0; i < count; ++i) ends.push_back(add_visit(std::span(&begin, 1)).end);
  return {begin, ends.empty() ? begin : builder_.add(instant(name_), ends)};
}

void StageLowering::add_resources() {
  const std::uint32_t slots = pooled_ ? stage_.slots() : 0;
  if (parts_.work) {
    // Threads differ where each keeps to a part of the host: in a pool, by its slot.
    const bool bound = resources_.cores.size() > 1;
    Stream pool = on_cores(slots, 0);
    if (bound && pooled_)
      for (std::uint32_t thread = 1; thread < stage_.slots(); ++thread)
        pool.pools.push_back(on_cores(slots, thread).pools.front());
    work_streams_ = {builder_.add(std::move(pool))};
    if (bound && !pooled_)
      for (std::uint32_t thread = 1; thread < stage_.slots(); ++thread)
        work_streams_.push_back(builder_.add(on_cores(slots, thread)));
  }
  if (parts_.read) {
    Stream stream = on_host(name_, slots);
    if (const auto link = resources_.bandwidth[*stage_.source]) {
      stream.pools = {*link};
      if (source_->connection) stream.rate_cap = source_->connection->bytes_per_s();
    }
    shared_link_ = !stream.pools.empty();
    read_ = builder_.add(std::move(stream));
  }
  if (parts_.serial) locks_.assign(stage_.workers, std::nullopt);
  if (!pooled_) threads_.assign(stage_.workers, InHand(stage_.threads));
}

Stream StageLowering::on_cores(std::uint32_t slots, std::uint32_t thread) const {
  Stream stream = on_host(name_, slots);
  if (!resources_.cores.empty()) {
    stream.pools = {resources_.cores[(first_thread_ + thread) % resources_.cores.size()]};
    stream.rate_cap = resources_.core_speed;
  }
  return stream;
}

// Workers start one after another, all before any works.
void StageLowering::add_start(bool spread) {
  const Seconds start_up = stage_.start_up * stage_.workers;
  const Seconds over = spread ? hold_time(pipeline_, stage_) : Seconds::s(0);
  if (!(start_up + over > Seconds::s(0))) return;
  // The op that begins first in a pool requests it first.
  const std::uint32_t stream = !pooled_ ? program::kNoStream : read_ ? *read_ : work_streams_[0];
  for (std::uint32_t i = 0; i < stage_.slots(); ++i)
    started_.push_back(builder_.add(plain(start_up + over * i / stage_.slots(), stream).op));
}

StageLowering::Part StageLowering::plain(Seconds time, std::uint32_t stream) const {
  return {{.name = name_, .task = Task::kInput, .duration = whole(time), .stream = stream}};
}

Seconds StageLowering::draw(const ServiceTime& own, ServiceTime Source::*client, double requests) {
  Seconds drawn = own.draw(random_);
  for (double i = 0; i < requests; ++i) drawn += (source_->*client).draw(random_);
  return drawn;
}

StageLowering::Part StageLowering::core_op(Seconds drawn, std::uint32_t stream) const {
  if (resources_.cores.empty()) return plain(drawn, stream);
  Part part = plain(Seconds::s(0), stream);
  part.work = std::min(drawn.s(), 1e5);
  return part;
}

StageLowering::Part StageLowering::read_op(bool hit, Bytes bytes, double requests) {
  double work = 0;
  Seconds time = Seconds::s(0);
  if (hit) {
    if (source_->memory) time = bytes / *source_->memory;
  } else {
    for (double i = 0; i < requests; ++i) time += source_->latency.draw(random_);
    if (shared_link_)
      work = bytes.b();
    else if (source_->connection)
      time += bytes / *source_->connection;
  }
  if (!parts_.work) time += draw(stage_.time, &Source::client, requests);
  Part part = plain(time, *read_);
  part.work = work;
  return part;
}

StageLowering::Take StageLowering::add_visit(std::span<const OpIndex> before) {
  after_.assign(before.begin(), before.end());
  const std::uint64_t visit = visits_++;
  // The workers of a stage whose visits have several parts take visits in turn.
  const std::size_t worker = visit % stage_.workers;
  if (!pooled_) threads_[worker].before_next(builder_, name_, after_);
  if (!pooled_ && visit < started_.size()) after_.push_back(started_[visit]);
  std::optional<OpIndex> begin;
  const auto add = [&](const Part& part) {
    const OpIndex op = builder_.add(part.op, after_);
    if (part.work > 0) builder_.set_work(op, part.work);
    work_.push_back({op, visit});
    after_.assign(1, op);
    if (!begin) begin = op;
  };
  bool hit = false;
  const Bytes bytes =
      stage_.reads.empty() ? stage_.bytes : stage_.reads[visit % stage_.reads.size()];
  if (parts_.read) {
    const double hits = source_->hits, n = static_cast<double>(visit);
    hit = std::floor((n + 1) * hits + 1e-9) > std::floor(n * hits + 1e-9);
  }
  const double requests = parts_.read && !hit ? requests_of(*source_, stage_, bytes) : 0;
  if (parts_.admitted && requests > 0)
    add(plain(Seconds::s(requests / *source_->requests_per_s),
              *resources_.admission[*stage_.source]));
  if (parts_.read) add(read_op(hit, bytes, requests));
  if (parts_.work) {
    const std::size_t thread = worker * stage_.threads + visit / stage_.workers % stage_.threads;
    add(core_op(draw(stage_.time, &Source::client, requests),
                work_streams_[thread % work_streams_.size()]));
  }
  if (parts_.serial)
    add(core_op(draw(stage_.serial, &Source::client_serial, requests),
                lock_of(static_cast<std::uint32_t>(worker))));
  if (!pooled_) threads_[worker].ended(after_.front());
  return {*begin, after_.front()};
}

std::uint32_t StageLowering::lock_of(std::uint32_t worker) {
  std::optional<std::uint32_t>& lock = locks_[worker];
  if (!lock) lock = builder_.add(on_cores(1, worker * stage_.threads));
  return *lock;
}

}  // namespace rehearse::input
