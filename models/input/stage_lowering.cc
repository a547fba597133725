#include "models/input/stage_lowering.h"

#include <algorithm>
#include <cmath>

namespace rehearse::input {

using graph::Category;
using graph::Demand;
using graph::GraphBuilder;
using graph::Op;

Picoseconds whole(Seconds time) { return Picoseconds::from(std::min(time, Seconds::s(1e5))); }

Op instant(NameId name) {
  return {.name = name, .category = Category::kInput, .duration = Picoseconds(0)};
}

Resources add_resources(const Pipeline& pipeline, GraphBuilder& builder) {
  Resources resources;
  if (const auto& host = pipeline.host) {
    const double busy = busy_threads(pipeline);
    resources.core_speed = host->speed(busy);
    for (const double rate : part_capacities(pipeline))
      resources.cores.push_back(
          builder.add(graph::Capacity{.name = builder.intern("host cores"), .rate = rate}));
  }
  for (const Source& source : pipeline.sources) {
    const NameId name = builder.intern(source.name);
    resources.bandwidth.emplace_back();
    if (source.total)
      resources.bandwidth.back() =
          builder.add(graph::Capacity{.name = name, .rate = source.total->bytes_per_s()});
    resources.admission.emplace_back();
    if (source.requests_per_s)
      resources.admission.back() = builder.add(graph::Server{.name = name});
  }
  return resources;
}

StageLowering::StageLowering(const Pipeline& pipeline, std::size_t index, bool spread,
                             const Resources& resources, GraphBuilder& builder)
    : pipeline_(pipeline),
      stage_(pipeline.stages[index]),
      source_(stage_.source ? &pipeline.sources[*stage_.source] : nullptr),
      resources_(resources),
      builder_(builder),
      random_(random_stream(pipeline.seed, index)),
      name_(builder.intern(stage_.name)),
      first_thread_(0) {
  for (std::size_t i = 0; i < index; ++i) first_thread_ += threads_on_cores(pipeline.stages[i]);
  parts_.admitted = source_ && source_->requests_per_s;
  parts_.read = source_ != nullptr;
  parts_.serial = stage_.serial.mean.s() > 0;
  // Without a shared host, work is a plain duration and is merged with the read.
  parts_.work = (stage_.time.mean.s() > 0 && (!resources.cores.empty() || !parts_.read)) ||
                !(parts_.read || parts_.serial);
  pooled_ = parts_.count() == 1 && !parts_.serial;
  add_resources();
  add_start(spread);
}

void StageLowering::free_workers() {
  work_demands_.clear();
  add_resources();
}

OpId StageLowering::add_take(std::uint64_t take, const std::vector<OpId>& after) {
  const auto visits_before = [&](std::uint64_t k) {
    return static_cast<std::uint64_t>(std::floor(static_cast<double>(k) * stage_.visits + 1e-9));
  };
  const std::uint64_t count = visits_before(take + 1) - visits_before(take);
  if (count == 1) return add_visit(after);
  const OpId begin = add(instant(name_), after);
  std::vector<OpId> ends;
  for (std::uint64_t i = 0; i < count; ++i) ends.push_back(add_visit({begin}));
  if (ends.empty()) return begin;
  return add(instant(name_), ends);
}

OpId StageLowering::add(Op op, std::vector<OpId> after) {
  const OpId id = builder_.add(op);
  std::sort(after.begin(), after.end());
  after.erase(std::unique(after.begin(), after.end()), after.end());
  for (const OpId before : after) builder_.add_edge(before, id);
  return id;
}

void StageLowering::add_resources() {
  if (parts_.work) {
    // Threads differ where each keeps to a part of the host.
    const std::uint32_t different = resources_.cores.size() > 1 ? stage_.slots() : 1;
    for (std::uint32_t thread = 0; thread < different; ++thread)
      work_demands_.push_back(builder_.add(on_cores({}, thread)));
  }
  std::optional<ServerId> pool;
  if (pooled_) {
    graph::Server server{.name = name_, .slots = stage_.slots()};
    if (work_demands_.size() > 1) server.slot_demands = work_demands_;
    const bool bound = !server.slot_demands.empty();
    pool = builder_.add(std::move(server));
    if (parts_.work)
      work_demands_ = {builder_.add(bound ? Demand{.server = pool} : on_cores(pool, 0))};
  }
  if (parts_.admitted)
    admission_ = builder_.add(Demand{.server = resources_.admission[*stage_.source]});
  if (parts_.read) {
    Demand demand{.server = pool};
    if (const auto link = resources_.bandwidth[*stage_.source]) {
      demand.capacities = {*link};
      if (source_->connection) demand.rate_cap = source_->connection->bytes_per_s();
    }
    shared_link_ = !demand.capacities.empty();
    read_ = builder_.add(std::move(demand));
  }
  if (parts_.serial) locks_.assign(stage_.workers, std::nullopt);
  if (!pooled_) threads_.assign(stage_.workers, InHand(stage_.threads));
}

Demand StageLowering::on_cores(std::optional<ServerId> server, std::uint32_t thread) const {
  Demand demand{.server = server};
  if (!resources_.cores.empty()) {
    demand.capacities = {resources_.cores[(first_thread_ + thread) % resources_.cores.size()]};
    demand.rate_cap = resources_.core_speed;
  }
  return demand;
}

// Workers start one after another, all before any works.
void StageLowering::add_start(bool spread) {
  const Seconds start_up = stage_.start_up * stage_.workers;
  const Seconds over = spread ? hold_time(pipeline_, stage_) : Seconds::s(0);
  if (!(start_up + over > Seconds::s(0))) return;
  // The op that begins first in a pool requests it first.
  const DemandId demand = !pooled_ ? DemandId(0) : read_ ? *read_ : work_demands_.front();
  for (std::uint32_t i = 0; i < stage_.slots(); ++i)
    started_.push_back(builder_.add(Op{.name = name_,
                                       .category = Category::kInput,
                                       .duration = whole(start_up + over * i / stage_.slots()),
                                       .demand = demand}));
}

Op StageLowering::core_op(const ServiceTime& time, DemandId demand) {
  const Seconds drawn = time.draw(random_);
  Op op{.name = name_, .category = Category::kInput, .duration = Picoseconds(0), .demand = demand};
  if (!resources_.cores.empty())
    op.work = std::min(drawn.s(), 1e5);
  else
    op.duration = whole(drawn);
  return op;
}

Op StageLowering::read_op(bool hit, Bytes bytes) {
  Op op{.name = name_, .category = Category::kInput, .duration = Picoseconds(0), .demand = *read_};
  Seconds time = Seconds::s(0);
  if (hit) {
    if (source_->memory) time = bytes / *source_->memory;
  } else {
    const double requests = requests_of(*source_, stage_, bytes);
    for (double i = 0; i < requests; ++i) time += source_->latency.draw(random_);
    if (shared_link_)
      op.work = bytes.b();
    else if (source_->connection)
      time += bytes / *source_->connection;
  }
  if (!parts_.work) time += stage_.time.draw(random_);
  op.duration = whole(time);
  return op;
}

OpId StageLowering::add_visit(std::vector<OpId> after) {
  const std::uint64_t visit = visits_++;
  // The workers of a stage whose visits have several parts take visits in turn.
  const std::size_t worker = visit % stage_.workers;
  if (!pooled_) threads_[worker].before_next(builder_, name_, after);
  if (!pooled_ && visit < started_.size()) after.push_back(started_[visit]);
  const auto part = [&](const Op& op) {
    const OpId id = add(op, std::move(after));
    work_.push_back({id, visit});
    after = {id};
  };
  bool hit = false;
  const Bytes bytes =
      stage_.reads.empty() ? stage_.bytes : stage_.reads[visit % stage_.reads.size()];
  if (parts_.read) {
    const double hits = source_->hits, n = static_cast<double>(visit);
    hit = std::floor((n + 1) * hits + 1e-9) > std::floor(n * hits + 1e-9);
  }
  if (const double requests = parts_.admitted && !hit ? requests_of(*source_, stage_, bytes) : 0;
      requests > 0)
    part(Op{.name = name_,
            .category = Category::kInput,
            .duration = whole(Seconds::s(requests / *source_->requests_per_s)),
            .demand = *admission_});
  if (parts_.read) part(read_op(hit, bytes));
  if (parts_.work) {
    const std::size_t thread = worker * stage_.threads + visit / stage_.workers % stage_.threads;
    part(core_op(stage_.time, work_demands_[thread % work_demands_.size()]));
  }
  if (parts_.serial) part(core_op(stage_.serial, lock_of(static_cast<std::uint32_t>(worker))));
  if (!pooled_) threads_[worker].ended(after.front());
  return after.front();
}

DemandId StageLowering::lock_of(std::uint32_t worker) {
  std::optional<DemandId>& lock = locks_[worker];
  if (!lock)
    lock =
        builder_.add(on_cores(builder_.add(graph::Server{.name = name_}), worker * stage_.threads));
  return *lock;
}

}  // namespace rehearse::input
