#include "models/sharing/tenant_program.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "sim/program/rank_builder.h"

namespace rehearse::sharing {
namespace {

using program::OpIndex, program::Pool, program::Program, program::ProgramOp, program::RankBuilder,
    program::RankProgram, program::Scope, program::Stream, program::Task;

/// The rate of ops of one tenant during its turn: practically unlimited.
constexpr double kUnbounded = 1e6;

/// One rank's program on a shared device.
class SharedRank {
 public:
  SharedRank(NamePool& names, RankProgram& program, std::size_t number, const Sharing& sharing,
             const Contended& contended)
      : names_(names),
        program_(program),
        number_(number),
        sharing_(sharing),
        contended_(contended) {}

  void share(const DeviceOp& on) {
    ProgramOp& op = program_.ops[on.op];
    const bool has_work = on.op < program_.work.size() && program_.work[on.op] > 0;
    if (!has_work && !(op.duration > Picoseconds(0))) return;
    const auto [known, added] = streams_.try_emplace(
        {slots_of(op), on.multiprocessors, on.bandwidth, on.host_link}, std::nullopt);
    if (added) known->second = add_stream(slots_of(op), on);
    if (!known->second) return;
    op.stream = *known->second;
    if (has_work) return;
    if (program_.work.size() <= on.op) program_.work.resize(program_.ops.size(), 0);
    program_.work[on.op] = op.duration->seconds().s();
    op.duration = Picoseconds(0);
  }

 private:
  /// The stream of the op, which is named for all ops of its task.
  std::uint32_t slots_of(const ProgramOp& op) {
    if (op.stream != program::kStreamOfTask) return op.stream;
    const Task task = op.task;
    const std::uint32_t stream = add(Stream{.name = names_.intern("of the task")});
    for (ProgramOp& other : program_.ops)
      if (other.task == task && other.stream == program::kStreamOfTask) other.stream = stream;
    return stream;
  }

  /// The use of the slots by ops with such a demand; nothing if they contend for nothing.
  std::optional<std::uint32_t> add_stream(std::uint32_t slots, const DeviceOp& on) {
    Stream stream{.name = names_.intern("shared"), .slots = 0};
    if (slots != program::kNoStream) {
      stream = program_.streams[slots];
      stream.slots_of = slots;
    }
    stream.units_per_work.resize(stream.pools.size(), 1);
    const std::size_t before = stream.pools.size();
    const auto through = [&](const char* what, double units, double rate = 1,
                             std::optional<program::Turns> turns = {}) {
      stream.pools.push_back(pool(what, rate, turns));
      stream.units_per_work.push_back(units);
    };
    const bool kernel = on.multiprocessors > 0 || on.bandwidth > 0;
    double fastest = 1;
    if (kernel && (sharing_.policy == Policy::kMps || sharing_.policy == Policy::kPriority)) {
      const double whole = contended_.whole_kernels ? 1 : 0;
      const double multiprocessors = std::max(whole, on.multiprocessors);
      const double bandwidth = contended_.bandwidth ? std::max(whole, on.bandwidth) : 0;
      const double cap = sharing_.caps.empty() ? 1 : sharing_.caps[number_];
      fastest = std::min(1.0, multiprocessors > 0 ? cap / multiprocessors : 1);
      if (multiprocessors > 0) through("multiprocessors", multiprocessors);
      if (bandwidth > 0) through("memory bandwidth", bandwidth);
      if (sharing_.policy == Policy::kPriority)
        stream.priority = -static_cast<std::int32_t>(number_);  // below what ops hold
    }
    if (kernel && sharing_.policy == Policy::kTimeSlice) {
      const Picoseconds change =
          contended_.change ? Picoseconds::from(sharing_.change) : Picoseconds(0);
      through("turn", 1, kUnbounded, program::Turns{Picoseconds::from(sharing_.quantum), change});
      stream.group = static_cast<std::uint32_t>(number_);
    }
    if (on.host_link > 0 && contended_.links) through("host link", 1);
    if (stream.pools.size() == before) return std::nullopt;
    stream.rate_cap = std::min(stream.rate_cap, fastest);
    return add(std::move(stream));
  }

  /// The pool that all tenants share on a device.
  std::uint32_t pool(const char* what, double rate, std::optional<program::Turns> turns) {
    const Pool pool{
        .name = names_.intern(what), .rate = rate, .turns = turns, .scope = Scope::kDevice};
    const auto known = std::ranges::find(program_.pools, pool);
    const auto number = static_cast<std::uint32_t>(known - program_.pools.begin());
    if (known == program_.pools.end()) program_.pools.push_back(pool);
    return number;
  }

  std::uint32_t add(Stream stream) {
    program_.streams.push_back(std::move(stream));
    return static_cast<std::uint32_t>(program_.streams.size() - 1);
  }

  NamePool& names_;
  RankProgram& program_;
  const std::size_t number_;
  const Sharing& sharing_;
  const Contended& contended_;
  // By the stream whose slots they use, and their demand.
  std::map<std::tuple<std::uint32_t, double, double, double>, std::optional<std::uint32_t>>
      streams_;
};

/// Ops that wait for none of their program, and ops for which none waits.
struct Ends {
  std::vector<OpIndex> first, last;
};

Ends ends_of(const RankProgram& program) {
  Ends ends;
  std::vector<char> has_next(program.ops.size(), 0);
  for (const OpIndex before : program.dependencies) has_next[before] = 1;
  for (OpIndex i = 0; i < program.ops.size(); ++i) {
    if (program.first_dependency[i] == program.first_dependency[i + 1]) ends.first.push_back(i);
    if (!has_next[i]) ends.last.push_back(i);
  }
  return ends;
}

void repeat(RankProgram& program, std::uint32_t periods) {
  const auto n = static_cast<std::uint32_t>(program.ops.size());
  const std::size_t dependencies = program.dependencies.size();
  std::uint32_t tags = 0;
  for (const ProgramOp& op : program.ops)
    if (op.task == Task::kCollective && op.duration) tags = std::max(tags, op.tag + 1);
  program.recorded.clear();
  program.device_work.clear();
  if (!program.work.empty()) program.work.resize(n, 0);
  const std::vector<double> work = program.work;
  for (std::uint32_t p = 1; p < periods; ++p) {
    for (std::uint32_t i = 0; i < n; ++i) {
      ProgramOp op = program.ops[i];
      if (op.task == Task::kCollective && op.duration) op.tag += p * tags;
      program.ops.push_back(op);
      program.first_dependency.push_back(program.first_dependency[i + 1] +
                                         static_cast<std::uint32_t>(p * dependencies));
    }
    for (std::size_t d = 0; d < dependencies; ++d)
      program.dependencies.push_back(program.dependencies[d] + p * n);
    program.work.insert(program.work.end(), work.begin(), work.end());
  }
}

}  // namespace

Program on_shared_devices(Program program, std::span<const DeviceOp> ops, std::size_t number,
                          const Sharing& sharing, const Contended& contended) {
  std::vector<SharedRank> ranks;
  for (RankProgram& of : program.programs)
    ranks.emplace_back(program.names, of, number, sharing, contended);
  for (const DeviceOp& op : ops) ranks[op.program].share(op);
  return program;
}

Repeated repeated(Program program, std::uint32_t periods, Picoseconds begins) {
  const std::uint32_t service =
      program.ranks() + static_cast<std::uint32_t>(program.services.size());
  const NameId end = program.names.intern("end of the period");
  RankBuilder bounds;
  std::optional<OpIndex> before;
  if (begins > Picoseconds(0))
    before = bounds.add(ProgramOp{.name = program.names.intern("not yet"),
                                  .task = Task::kDelay,
                                  .duration = begins,
                                  .stream = program::kNoStream});
  std::vector<Ends> ends;
  std::vector<std::uint32_t> size;
  for (RankProgram& of : program.programs) {
    ends.push_back(ends_of(of));
    size.push_back(static_cast<std::uint32_t>(of.ops.size()));
    repeat(of, periods);
  }
  Repeated tenant;
  for (std::uint32_t p = 0; p < periods; ++p) {
    const OpIndex close = bounds.add(ProgramOp{.name = end,
                                               .task = Task::kMark,
                                               .duration = Picoseconds(0),
                                               .stream = program::kNoStream});
    for (std::uint32_t r = 0; r < program.ranks(); ++r) {
      const std::uint32_t of = program.program_of[r];
      if (before)
        for (const OpIndex i : ends[of].first)
          program.orders.push_back({{service, *before}, {r, p * size[of] + i}});
      for (const OpIndex i : ends[of].last)
        program.orders.push_back({{r, p * size[of] + i}, {service, close}});
    }
    tenant.ends.push_back({service, close});
    before = close;
  }
  program.services.push_back(std::move(bounds).build());
  tenant.program = std::move(program);
  return tenant;
}

void add_turns(Repeated& tenant, std::span<const Turn> turns) {
  if (turns.empty()) return;
  Program& program = tenant.program;
  const std::uint32_t service = tenant.ends.front().of;
  const NameId name = program.names.intern("turn of the devices");
  const auto slots_in = [&](RankBuilder& builder) {
    return builder.add(Stream{.name = name, .leases = true, .scope = Scope::kAll});
  };
  const auto bound = [&](RankBuilder& builder, std::uint32_t slots, const Turn& turn) {
    return builder.add(ProgramOp{
        .name = name,
        .task = Task::kMark,
        .duration = Picoseconds(0),
        .stream = builder.add(Stream{.name = name, .slots_of = slots, .lease = turn.lease})});
  };
  std::vector<std::vector<std::uint32_t>> ranks_of(program.programs.size());
  for (std::uint32_t r = 0; r < program.ranks(); ++r) ranks_of[program.program_of[r]].push_back(r);

  RankBuilder grants(std::move(program.services.back()));
  const std::uint32_t slots = slots_in(grants);
  std::vector<OpIndex> granted;  // by turn
  for (const Turn& turn : turns) {
    granted.push_back(bound(grants, slots, turn));
    const RankProgram& of = program.programs[turn.first];
    const OpIndex op = turn.ops[turn.first].front();
    for (std::uint32_t d = of.first_dependency[op]; d < of.first_dependency[op + 1]; ++d)
      for (const std::uint32_t r : ranks_of[turn.first])
        program.orders.push_back({{r, of.dependencies[d]}, {service, granted.back()}});
    if (of.first_dependency[op] == of.first_dependency[op + 1] && turn.period > 0)
      grants.depend(granted.back(), tenant.ends[turn.period - 1].op);
  }
  program.services.back() = std::move(grants).build();
  for (std::uint32_t number = 0; number < program.programs.size(); ++number) {
    RankBuilder builder(std::move(program.programs[number]));
    const std::uint32_t of_rank = slots_in(builder);
    for (std::size_t t = 0; t < turns.size(); ++t) {
      if (turns[t].ops[number].empty()) continue;
      const OpIndex begin = bound(builder, of_rank, turns[t]),
                    end = bound(builder, of_rank, turns[t]);
      for (const std::uint32_t r : ranks_of[number])
        program.orders.push_back({{service, granted[t]}, {r, begin}});
      for (const OpIndex op : turns[t].ops[number]) {
        builder.depend(op, begin);
        builder.depend(end, op);
      }
    }
    program.programs[number] = std::move(builder).build();
  }
}

}  // namespace rehearse::sharing
