#include "models/workload/lift_plan.h"

#include <algorithm>
#include <set>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "sim/base/text.h"

namespace rehearse::workload::lifting {
namespace {

/// "ranks 0-3", "ranks 0, 2, 4"; "4 ranks" if they are not recorded.
std::string among(const GroupTraffic& group) {
  const std::vector<std::uint32_t>& m = group.members;
  if (m.empty()) return group.size > 0 ? counted(group.size, "rank") : "an unknown number of ranks";
  if (m.size() > 2 && m.back() - m.front() + 1 == m.size())
    return fmt::format("ranks {}-{}", m.front(), m.back());
  return fmt::format("ranks {}", fmt::join(m, ", "));
}

Exchange exchanged(const GroupTraffic& group, Phase phase, CollectiveKind kind) {
  const auto at = group.exchanges.find({phase, kind});
  return at == group.exchanges.end() ? Exchange{} : at->second;
}

/// Outside of the forward pass.
Exchange after_forward(const GroupTraffic& group, CollectiveKind kind) {
  Exchange sum;
  for (const Phase phase : {Phase::kBackward, Phase::kRecompute, Phase::kOptimizer}) {
    const Exchange one = exchanged(group, phase, kind);
    sum.count += one.count;
    sum.bytes += one.bytes;
    sum.largest = std::max(sum.largest, one.largest);
    sum.sized += one.sized;
  }
  return sum;
}

std::size_t count_of(const GroupTraffic& group, CollectiveKind kind) {
  return exchanged(group, Phase::kForward, kind).count + after_forward(group, kind).count;
}

std::string_view plain_name(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kAllReduce: return "all-reduce";
    case CollectiveKind::kReduceScatter: return "reduce-scatter";
    case CollectiveKind::kAllGather: return "all-gather";
    case CollectiveKind::kAllToAll: return "all-to-all";
    case CollectiveKind::kSendRecv: return "message";
    default: return to_string(kind);
  }
}

/// "4 all-reduces of gradients, 32.0 MiB together"
std::string sum_of(const Exchange& exchange, CollectiveKind kind, std::string_view what) {
  std::string text = fmt::format("{} of {}", counted(exchange.count, plain_name(kind)), what);
  if (exchange.sized == exchange.count && exchange.count > 0)
    text += fmt::format(", {}{}", to_string(Bytes::b(exchange.bytes)),
                        exchange.count > 1 ? " together" : "");
  return text;
}

/// "4 all-reduces of 32.0 MiB"
std::string text_of(const Exchange& exchange, CollectiveKind kind, std::size_t passes = 1) {
  std::string text = counted(exchange.count / passes, plain_name(kind));
  if (exchange.sized == exchange.count)
    text += fmt::format(
        " of {}{}",
        exchange.bytes < exchange.largest * static_cast<double>(exchange.count) ? "up to " : "",
        to_string(Bytes::b(exchange.largest)));
  return text;
}

/// What a group of ranks is for, on one rank.
enum class Purpose { kNone, kTensor, kData, kPipeline, kUnknown };

struct Reading {
  Purpose purpose = Purpose::kUnknown;
  std::string reason = {};  ///< why it is unknown
};

Reading read(const GroupTraffic& group, const RankTraffic& rank) {
  using Kind = CollectiveKind;
  const Exchange sums = exchanged(group, Phase::kForward, Kind::kAllReduce);
  const Exchange scattered = exchanged(group, Phase::kForward, Kind::kReduceScatter);
  if (group.exchanges.empty()) return {Purpose::kNone};
  if (const std::size_t count = count_of(group, Kind::kAllToAll); count > 0)
    return {Purpose::kUnknown,
            fmt::format(
                "{} among {}, not next to attention or known experts, may exchange tokens or rows "
                "of tables",
                counted(count, "all-to-all"), among(group))};
  if (count_of(group, Kind::kSendRecv) > 0) return {Purpose::kPipeline};
  if (sums.count + scattered.count > 0) {
    // Tensor ranks need not divide experts, if they divide anything else.
    const std::size_t rows = rank.rows > 0 ? rank.rows : rank.expert_rows;
    if (group.row_sums > 0 && group.row_sums >= rows * rank.microbatches) return {Purpose::kTensor};
    return {Purpose::kUnknown,
            fmt::format("{} among {} in the forward pass: only {} of them have the size of the "
                        "output of one of its {} that tensor parallelism divides by inputs",
                        text_of(sums.count > 0 ? sums : scattered,
                                sums.count > 0 ? Kind::kAllReduce : Kind::kReduceScatter),
                        among(group), group.row_sums, counted(rank.rows, "linear"))};
  }
  const Exchange gathered = exchanged(group, Phase::kForward, Kind::kAllGather);
  if (gathered.count > 0 && after_forward(group, Kind::kReduceScatter).count == 0)
    return {Purpose::kUnknown,
            fmt::format("{} among {} in the forward pass, without gradients that "
                        "are scattered, gather no weights",
                        text_of(gathered, Kind::kAllGather), among(group))};
  return {Purpose::kData};
}

/// The stage of ZeRO that the collectives of a group of data-parallel ranks show.
struct Sharding {
  std::uint32_t zero = 0;
  std::string evidence;
};

Sharding sharding(const GroupTraffic& group, std::size_t microbatches) {
  using Kind = CollectiveKind;
  const Exchange summed = after_forward(group, Kind::kAllReduce);
  const Exchange scattered = after_forward(group, Kind::kReduceScatter);
  const Exchange fetched = exchanged(group, Phase::kForward, Kind::kAllGather);
  const Exchange again = exchanged(group, Phase::kBackward, Kind::kAllGather);
  const Exchange gathered = after_forward(group, Kind::kAllGather);
  const std::string who = among(group);
  if (fetched.count > 0)
    return {again.count > 0 ? 3U : 2U,
            fmt::format("{} in the forward pass, {} in backward, {}, among {}",
                        sum_of(fetched, Kind::kAllGather, "weights"),
                        counted(again.count, "all-gather"),
                        sum_of(scattered, Kind::kReduceScatter, "gradients"), who)};
  if (scattered.count > 0 && gathered.count > 0) {
    // A sum in FP32 of gradients of 16-bit weights moves twice the bytes of the weights.
    const double whole = gathered.bytes * group.size;
    const bool each_pass = microbatches > 2 && scattered.bytes > 2.5 * whole;
    return {each_pass ? 2U : 1U, fmt::format("{}, and {} after them, among {}{}",
                                             sum_of(scattered, Kind::kReduceScatter, "gradients"),
                                             sum_of(gathered, Kind::kAllGather, "weights"), who,
                                             each_pass ? "" : "; stages 1 and 2 look alike here")};
  }
  // Other broadcasts, in the forward pass, are of the statistics of norms.
  const Exchange spread = exchanged(group, Phase::kOptimizer, Kind::kBroadcast);
  if (spread.count > 0 && summed.count > 0)
    return {1, fmt::format("{}, and {} after the update, among {}",
                           sum_of(summed, Kind::kAllReduce, "gradients"),
                           sum_of(spread, Kind::kBroadcast, "weights"), who)};
  return {0, fmt::format("{}, among {}", sum_of(summed, Kind::kAllReduce, "gradients"), who)};
}

double bytes_of(const GroupTraffic& group) {
  double sum = 0;
  for (const auto& [what, exchange] : group.exchanges) sum += exchange.bytes;
  return sum;
}

/// The plan as one rank shows it; a degree of 0 for the pipeline where there are messages between
/// stages.
struct RankReading {
  RecordedPlan plan;
  std::size_t messages = 0;          ///< between two ranks
  std::vector<std::uint32_t> known;  ///< ranks of its stage, itself included; may be incomplete
  std::set<GpuIndex> activations;    ///< messages of activations and their gradients
  std::string unclear;               ///< a message that may be of activations or of gradients
};

tl::unexpected<Error> refuse(const RankTraffic& rank, const std::string& reason) {
  return fail_in(rank.source, "does not tell the plan it was recorded under: " + reason,
                 "tensor, pipeline, context, expert and data parallelism, or ZeRO, in a "
                 "recording that states groups and sizes of collectives");
}

class Reader {
 public:
  explicit Reader(const RankTraffic& rank) : rank_(rank) {
    if (rank.rank) out_.known.push_back(*rank.rank);
  }

  Result<RankReading> run() {
    if (rank_.unknown > 0)
      return refuse(fmt::format("{} of unknown kind", counted(rank_.unknown, "collective")));
    const GroupTraffic *tensor = nullptr, *data = nullptr;
    std::vector<const GroupTraffic*> of_data;
    for (const GroupTraffic& group : rank_.groups) {
      out_.plan.context_by_heads |=
          group.attention.contains({Phase::kForward, CollectiveKind::kAllToAll});
      TRY(set_exchanged(out_.plan.context, "context", "attention", group, group.attention));
      TRY(set_exchanged(out_.plan.expert, "expert", "experts", group, group.experts));
      for (const Sent& sent : group.sent)
        if (sent.exchange) out_.activations.insert(sent.op);
      const Reading reading = read(group, rank_);
      switch (reading.purpose) {
        case Purpose::kNone: break;
        case Purpose::kUnknown: return refuse(reading.reason);
        case Purpose::kPipeline:
          out_.plan.pipeline = 0;
          out_.messages += count_of(group, CollectiveKind::kSendRecv);
          for (const Sent& sent : group.sent) out_.activations.insert(sent.op);
          break;
        case Purpose::kTensor:
          if (tensor)
            return refuse(fmt::format("results are summed among {} and among {}", among(*tensor),
                                      among(group)));
          tensor = &group;
          break;
        case Purpose::kData: of_data.push_back(&group); break;
      }
    }
    if (tensor && tensor->size == 0)
      return refuse("results are summed among an unknown number of ranks");
    if (tensor) set_tensor(*tensor);
    if (tensor) set_activations(*tensor);
    for (const GroupTraffic* group : of_data)
      if (!data || is_of_experts(*data, *group) ||
          (bytes_of(*group) > bytes_of(*data) && !is_of_experts(*group, *data)))
        data = group;
    if (data) {
      for (const GroupTraffic* group : of_data)
        if (group != data && !is_of_experts(*group, *data) &&
            2 * bytes_of(*group) > bytes_of(*data))
          return refuse(fmt::format("gradients are exchanged among {} and among {}", among(*data),
                                    among(*group)));
      TRY(set_data(*data));
    }
    const std::uint32_t holders =
        out_.plan.data * (out_.plan.whole_experts ? out_.plan.context * out_.plan.tensor : 1);
    if (holders % out_.plan.expert != 0)
      return refuse(
          fmt::format("experts are divided among {} ranks, but gradients are summed "
                      "among {}",
                      out_.plan.expert, out_.plan.data * out_.plan.context));
    if (out_.plan.pipeline == 0)
      out_.plan.degrees.push_back(
          {"pipeline", 0, fmt::format("{} between stages", counted(out_.messages, "message"))});
    out_.plan.chunks = rank_.chunks;
    if (rank_.chunks > 1)
      out_.plan.degrees.push_back(
          {"chunks", rank_.chunks,
           fmt::format("backward passes begin with the last of {} parts of the forward units, for "
                       "{}",
                       rank_.chunks, counted(rank_.microbatches, "microbatch"))});
    return std::move(out_);
  }

 private:
  tl::unexpected<Error> refuse(const std::string& reason) const {
    return lifting::refuse(rank_, reason);
  }
  void knows(const GroupTraffic& group) {
    out_.known.insert(out_.known.end(), group.members.begin(), group.members.end());
  }

  /// A degree that exchanges next to some work show.
  Status set_exchanged(std::uint32_t& degree, std::string_view name, std::string_view work,
                       const GroupTraffic& group, const Exchanges& exchanges) {
    if (exchanges.empty()) return {};
    if (degree > 1 || group.size == 0)
      return refuse(fmt::format("{} exchange among {}", work,
                                degree > 1 ? "two groups" : "an unknown number of ranks"));
    std::string text;
    for (const auto& [of, exchange] : exchanges)
      if (of.first == Phase::kForward)
        text += (text.empty() ? "" : " and ") + text_of(exchange, of.second, rank_.microbatches);
    degree = group.size;
    out_.plan.degrees.push_back(
        {name, degree,
         fmt::format("{} in a forward pass next to {}, among {}", text, work, among(group))});
    knows(group);
    return {};
  }

  /// Ranks with different tokens for experts ÷ those with different tokens for other layers.
  std::uint32_t of_experts() const { return out_.plan.whole_experts ? out_.plan.tensor : 1; }

  /// Among data ranks that hold the same experts, gradients of experts are summed.
  bool is_of_experts(const GroupTraffic& group, const GroupTraffic& data) const {
    return out_.plan.expert > 1 && group.size * out_.plan.expert == data.size * of_experts();
  }

  void set_tensor(const GroupTraffic& group) {
    using Kind = CollectiveKind;
    const Exchange scattered = exchanged(group, Phase::kForward, Kind::kReduceScatter);
    const bool sequence = scattered.count > 0;
    const Exchange sums =
        sequence ? scattered : exchanged(group, Phase::kForward, Kind::kAllReduce);
    out_.plan.whole_experts = has_whole_experts(rank_);
    const std::size_t linears = rank_.rows - rank_.tables,
                      experts = out_.plan.whole_experts ? 0 : rank_.expert_rows;
    std::string divided;
    if (linears > 0 || experts == 0) divided = counted(linears, "linear");
    if (experts > 0)
      divided += (divided.empty() ? "" : " and ") + counted(experts, "product") + " of experts";
    out_.plan.tensor = group.size;
    out_.plan.sequence_parallel = sequence;
    out_.plan.degrees.push_back(
        {"tensor", group.size,
         fmt::format(
             "{} in a forward pass among {}, for {} divided by inputs{}{}",
             text_of(sums, sequence ? Kind::kReduceScatter : Kind::kAllReduce, rank_.microbatches),
             among(group), divided,
             rank_.tables > 0 ? " and " + counted(rank_.tables, "table") + " divided by rows" : "",
             sequence ? "; norms are divided by tokens" : "")});
    knows(group);
  }

  /// Tensor ranks pass as much in backward as in forward. After the update began, they sum gradients
  /// of weights that all of them hold.
  void set_activations(const GroupTraffic& group) {
    std::set<double> sizes;
    for (const Sent& sent : group.sent)
      if (sent.phase == Phase::kForward) sizes.insert(sent.whole);
    for (const Sent& sent : group.sent) {
      if (sent.phase == Phase::kOptimizer) continue;
      if (!sizes.contains(sent.whole))
        out_.unclear = fmt::format("{} among {} in backward have the size of no message in forward",
                                   to_string(Bytes::b(sent.whole)), among(group));
      out_.activations.insert(sent.op);
    }
  }

  Status set_data(const GroupTraffic& recorded) {
    GroupTraffic group = recorded;
    if (group.size == 0 && out_.plan.tensor == 1 && out_.plan.pipeline == 1)
      group.size = rank_.world.value_or(0);
    const Sharding found = sharding(group, rank_.microbatches);
    if (group.size == 0) {
      if (found.zero > 0) return refuse("shards are gathered from an unknown number of ranks");
      out_.plan.notes.emplace_back("gradients are summed among an unknown number of ranks");
      return {};
    }
    const std::uint32_t context = out_.plan.context;
    if (group.size % context != 0)
      return refuse(fmt::format("gradients are summed among {}, which context {} does not divide",
                                among(group), context));
    out_.plan.data = group.size / context;
    out_.plan.zero = found.zero;
    if (out_.plan.data > 1 || context == 1)
      out_.plan.degrees.push_back({"data", out_.plan.data,
                                   context > 1
                                       ? fmt::format("{}, ÷ context {}", found.evidence, context)
                                       : found.evidence});
    if (found.zero > 0)
      out_.plan.degrees.push_back(
          {"ZeRO", found.zero, out_.plan.data > 1 ? "the same collectives" : found.evidence});
    knows(group);
    return {};
  }

  const RankTraffic& rank_;
  RankReading out_;
};

tl::unexpected<Error> two_jobs(const RankTraffic& a, const RankTraffic& b, std::string_view why) {
  return fail_in(b.source, fmt::format("is not of the same job as {}: {}", a.source, why),
                 "ranks of one job, recorded in one run");
}

Status check_ranks(const std::vector<RankTraffic>& ranks) {
  for (std::size_t b = 1; b < ranks.size(); ++b)
    for (std::size_t a = 0; a < b; ++a) {
      if (ranks[a].rank && ranks[a].rank == ranks[b].rank)
        return two_jobs(ranks[a], ranks[b], fmt::format("both are rank {}", *ranks[a].rank));
      if (ranks[a].world && ranks[b].world && ranks[a].world != ranks[b].world)
        return two_jobs(ranks[a], ranks[b],
                        fmt::format("{} and {} ranks", *ranks[a].world, *ranks[b].world));
    }
  return {};
}

/// Numbers the stages by their lowest rank, which is the order of all common numberings of ranks.
std::vector<std::uint32_t> stages_of(const std::vector<RankReading>& ranks) {
  // Ranks of one stage know one another, directly or through others.
  std::vector<std::set<std::uint32_t>> known;
  for (const RankReading& rank : ranks) known.emplace_back(rank.known.begin(), rank.known.end());
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t a = 0; a < known.size(); ++a)
      for (std::size_t b = 0; b < known.size(); ++b) {
        if (known[a] == known[b]) continue;
        if (std::none_of(known[a].begin(), known[a].end(),
                         [&](std::uint32_t r) { return known[b].contains(r); }))
          continue;
        known[a].insert(known[b].begin(), known[b].end());
        changed = true;
      }
  }
  std::set<std::set<std::uint32_t>> different(known.begin(), known.end());
  std::vector<std::uint32_t> stage;
  for (const std::set<std::uint32_t>& one : known)
    stage.push_back(
        static_cast<std::uint32_t>(std::distance(different.begin(), different.find(one))));
  return stage;
}

/// A chunk of a pipeline stage exchanges activations and their gradients once per microbatch with
/// each of its neighbours. The first chunk of all has one neighbour, as does the last.
Status check_messages(const RankTraffic& rank, const RankReading& reading, bool has_two) {
  const std::size_t passes = rank.microbatches * rank.chunks;
  const std::size_t most = has_two ? 4 * passes : 4 * passes - 2 * rank.microbatches;
  if (reading.messages <= most) return {};
  return fail_in(
      rank.source,
      fmt::format(
          "does not tell the plan it was recorded under: {} in {} may pass keys and values around "
          "a ring (context parallelism), or be those of several chunks of a pipeline stage",
          counted(reading.messages, "message"), counted(passes, "pass")),
      "at most one message of activations and one of gradients per pass and neighbour");
}

}  // namespace

Result<FoundPlan> find_plan(const std::vector<RankTraffic>& ranks) {
  TRY(check_ranks(ranks));
  std::vector<RankReading> readings;
  for (const RankTraffic& rank : ranks) readings.push_back(TRY(Reader(rank).run()));
  const RecordedPlan& first = readings.front().plan;
  for (std::size_t r = 1; r < ranks.size(); ++r) {
    const RecordedPlan& other = readings[r].plan;
    if (other.tensor != first.tensor || other.data != first.data || other.zero != first.zero ||
        other.context != first.context || other.expert != first.expert ||
        other.pipeline != first.pipeline || other.chunks != first.chunks)
      return two_jobs(
          ranks[0], ranks[r],
          fmt::format(
              "tensor {} and {}, context {} and {}, data {} and {}, ZeRO {} and {}, chunks {} "
              "and {}",
              first.tensor, other.tensor, first.context, other.context, first.data, other.data,
              first.zero, other.zero, first.chunks, other.chunks));
  }
  FoundPlan found{.plan = first, .stage_of = stages_of(readings)};
  const std::uint32_t stages = 1 + *std::max_element(found.stage_of.begin(), found.stage_of.end());
  const std::uint32_t in_stage = first.tensor * first.context * first.data;
  std::optional<std::uint32_t> world;
  for (const RankTraffic& rank : ranks)
    if (rank.world) world = rank.world;
  if (first.pipeline != 0) {
    if (stages > 1)
      return two_jobs(ranks[0],
                      ranks[static_cast<std::size_t>(
                          std::find(found.stage_of.begin(), found.stage_of.end(), 1U) -
                          found.stage_of.begin())],
                      "they share no group and exchange no messages");
    if (world && in_stage > 1 && *world != in_stage)
      return fail_in(ranks[0].source,
                     fmt::format("does not tell the plan it was recorded under: its collectives "
                                 "show {} of its {} ranks",
                                 in_stage, *world),
                     "a whole step of training");
  } else {
    if (!world || *world % in_stage != 0)
      return fail_in(ranks[0].source,
                     "does not tell the plan it was recorded under: it has messages between "
                     "stages of a pipeline, but not their number",
                     "a recording that states the number of ranks");
    found.plan.pipeline = *world / in_stage;
    FoundDegree& degree =
        *std::find_if(found.plan.degrees.begin(), found.plan.degrees.end(),
                      [](const FoundDegree& one) { return one.of == "pipeline"; });
    degree.degree = found.plan.pipeline;
    degree.evidence += fmt::format(
        "; {} ÷ (tensor {}{} × data {})", counted(*world, "rank"), first.tensor,
        first.context > 1 ? fmt::format(" × context {}", first.context) : "", first.data);
    if (stages != found.plan.pipeline)
      return fail_in(
          ranks[0].source,
          fmt::format("is of a job of {}: only ranks of {} are given",
                      counted(found.plan.pipeline, "pipeline stage"), counted(stages, "stage")),
          "recordings of at least one rank of each stage");
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      const std::uint32_t stage = found.stage_of[r];
      TRY(check_messages(ranks[r], readings[r], stage > 0 && stage + 1 < stages));
    }
  }
  const std::uint32_t all = found.plan.ranks();
  if (ranks.size() < all && all > 1)
    found.plan.notes.push_back(fmt::format(
        "{} of {} given: the others are assumed to work like the given ones of their stage",
        ranks.size(), counted(all, "rank")));
  return found;
}

Result<ActivationMessages> activation_messages(const Recording& recording, const StepUnits& step,
                                               const OpMaker& maker) {
  Shares shares = find_shares(step, maker);
  find_vocabulary(recording, step, maker, shares);
  const RankTraffic traffic = traffic_of(recording, step, shares, maker);
  const auto in_forward = [](const GroupTraffic& group) {
    return std::ranges::any_of(group.sent,
                               [](const Sent& sent) { return sent.phase == Phase::kForward; });
  };
  if (traffic.unknown == 0 && std::ranges::none_of(traffic.groups, in_forward)) return {};
  RankReading reading = TRY(Reader(traffic).run());
  if (!reading.unclear.empty()) return refuse(traffic, reading.unclear);
  return ActivationMessages{std::move(reading.activations), reading.plan.context};
}

}  // namespace rehearse::workload::lifting
