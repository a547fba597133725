#include "tests/validation/studies/collective_accuracy.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <tuple>

#include <fmt/core.h>

#include "models/comm/transfer.h"
#include "sim/base/csv.h"
#include "sim/base/text.h"
#include "tests/validation/studies/collective_nodes.h"
#include "tests/validation/studies/framework_calls.h"
#include "tests/validation/studies/shipped.h"

namespace rehearse::cli {
namespace {

namespace fs = std::filesystem;
using comm::Calibrated;
using comm::Calibration;
using comm::CollectiveCost;
using comm::MeasuredRow;
using Rows = std::vector<MeasuredRow>;

constexpr std::string_view kNvlinkDevices[] = {"a100_sxm4_80", "h100_sxm5_80", "b200_sxm_180",
                                               "b300"};

/// Those of the same table that the cases need.
constexpr std::string_view kDevices[] = {"a100_sxm4_80", "h100_sxm5_80", "b200_sxm_180", "b300",
                                         "l40s"};

/// The rows of one device of nccl_measured.csv, with what a fit to them asks for.
struct Measured {
  comm::FitRequest request;
  Rows fitted;  ///< those of the shipped calibration
  Rows rows;    ///< all
};

class Validator {
 public:
  Validator(fs::path data, CollectiveAccuracy& accuracy)
      : data_(std::move(data)), accuracy_(accuracy) {}

  Status run() {
    for (const auto step :
         {&Validator::shipped, &Validator::other_runs, &Validator::other_data, &Validator::ranks,
          &Validator::devices, &Validator::rings, &Validator::nodes})
      TRY((this->*step)());
    for (const std::string_view device : kNvlinkDevices) protocols(*find(device));
    return {};
  }

 private:
  /// Prices rows; what is refused is noted once per kind and number of ranks.
  void score(CollectiveCase& into, const Calibrated& calibrated, const Rows& rows,
             const std::optional<comm::FrameworkTiming>& timing = {}) {
    std::map<std::pair<CollectiveKind, std::uint32_t>, Result<CollectiveCost>> costs;
    for (const MeasuredRow& r : rows) {
      auto found = costs.find({r.kind, r.ranks});
      if (found == costs.end()) {
        found =
            costs
                .emplace(std::pair(r.kind, r.ranks),
                         CollectiveCost::resolve(calibrated, {.kind = r.kind, .ranks = r.ranks}))
                .first;
        if (!found->second)
          accuracy_.refused.push_back(into.name + ": " + to_string(found->second.error()));
      }
      if (!found->second) continue;
      comm::Price p = found->second->at(r.size);
      if (timing) p.time = comm::in_framework(p.time, *timing);
      into.rows.push_back(
          {calibrated.calibration.device, r, p.time.value, p.time.low, p.time.high});
    }
  }
  void add(CollectiveCase scored) {
    if (!scored.rows.empty()) accuracy_.cases.push_back(std::move(scored));
  }
  static Rows collectives_of(const Measured& m) {
    Rows rows;
    for (const MeasuredRow& r : m.rows)
      if (r.kind != CollectiveKind::kSendRecv) rows.push_back(r);
    return rows;
  }
  const Measured* find(std::string_view device) const {
    for (const Measured& m : measured_)
      if (m.request.device == device) return &m;
    return nullptr;
  }

  Status shipped() {
    const std::vector<Dealt> dealt = TRY(deal_shipped(data_));
    for (const Dealt& d : dealt) {
      Rows all = d.fitted;
      all.insert(all.end(), d.blind.begin(), d.blind.end());
      measured_.push_back({d.request, d.fitted, std::move(all)});
    }
    for (const std::string_view device : kDevices)
      if (!find(device))
        return fail(Diagnostic{.file = (*find_data(data_, "nccl_measured.csv")).string(),
                               .problem = fmt::format("has no rows of {}", device),
                               .expected = "those of A100, B200, B300, H100 and L40S"});
    for (const bool blind : {false, true}) {
      std::map<std::string, CollectiveCase> cases;
      for (const Dealt& d : dealt) {
        const bool nvlink = d.request.fabric == comm::Fabric::kNvswitch;
        const std::string what = nvlink ? "nvlink" : d.request.device;
        const std::string name = fmt::format("{}, {}", what, blind ? "left out" : "fitted");
        CollectiveCase& into =
            cases
                .try_emplace(name, CollectiveCase{.name = name,
                                                  .about = blind ? "rows that the shipped "
                                                                   "calibration was not fitted to"
                                                                 : "rows that it was fitted to",
                                                  .blind = blind})
                .first->second;
        Rows collectives, messages;
        for (const MeasuredRow& r : blind ? d.blind : d.fitted)
          (r.kind == CollectiveKind::kSendRecv ? messages : collectives).push_back(r);
        score(into, *comm::calibration_for(d.request.device), collectives);
        const std::string sent = fmt::format("nvlink send_recv, {}", blind ? "left out" : "fitted");
        if (messages.empty()) continue;
        CollectiveCase sending = into;
        sending.name = sent;
        sending.rows.clear();
        score(cases.try_emplace(sent, sending).first->second,
              *comm::calibration_for(d.request.device), messages);
      }
      // NVLink first.
      if (auto nvlink = cases.extract(fmt::format("nvlink, {}", blind ? "left out" : "fitted")))
        add(std::move(nvlink.mapped()));
      for (auto& [name, scored] : cases) add(std::move(scored));
    }
    return {};
  }

  /// The same machines on other days: other versions of NCCL, and bytes instead of halves.
  Status other_runs() {
    const std::pair<const char*, const char*> files[] = {
        {"a100_sxm4_80", "nccl_a100_sxm_2.27.3.csv"},
        {"b200_sxm_180", "nccl_b200_sxm_2.28.9.csv"},
        {"h100_sxm5_80", "nccl_h100_sxm_2.27.3.csv"},
        {"l40s", "nccl_l40s_2.27.3.csv"}};
    CollectiveCase runs{.name = "nvlink, other runs",
                        .about = "H100 and B200 with another version of NCCL, half precision"};
    CollectiveCase bytes{.name = "nvlink, int8", .about = "A100, H100, B200: elements of one byte"};
    CollectiveCase staged{.name = "l40s, int8", .about = "elements of one byte"};
    for (const auto& [device, file] : files) {
      const fs::path path = data_ / "aiconfigurator-kernels" / file;
      const Calibrated calibrated = *comm::calibration_for(device);
      for (const char* type : {"half", "int8"}) {
        const bool half = std::string_view(type) == "half";
        const std::vector<MeasuredTable> tables = TRY(read_element_csv(path, device, type));
        for (const MeasuredTable& table : tables) {
          if (half && same_run(table.rows, find(device)->rows)) continue;
          score(half                           ? runs
                : calibrated.calibration.links ? bytes
                                               : staged,
                calibrated, table.rows);
        }
      }
    }
    add(std::move(runs));
    add(std::move(bytes));
    add(std::move(staged));
    return {};
  }

  /// Whether a table holds the very rows of another: half of its times equal is no accident.
  static bool same_run(const Rows& a, const Rows& b) {
    std::size_t equal = 0;
    for (const MeasuredRow& r : a)
      for (const MeasuredRow& s : b)
        if (r.kind == s.kind && r.ranks == s.ranks && r.size == s.size &&
            std::abs(r.time / s.time - 1) < 1e-3)
          ++equal;
    return 2 * equal > a.size();
  }

  Status other_data() {
    const auto against_a100 = [&](std::string name, std::string about,
                                  const Result<MeasuredTable>& table) -> Status {
      if (!table) return forward(table);
      CollectiveCase scored{.name = std::move(name), .about = std::move(about)};
      score(scored, *comm::calibration_for("a100_sxm4_80"), table->rows);
      add(std::move(scored));
      return {};
    };
    TRY(against_a100("a100, vTrain", "an older NCCL, all_reduce on 2, 4, 6, 8 ranks",
                     read_lookup_tables(data_ / "vtrain-megatron-a100" / "nccl_allreduce_a100",
                                        "a100_sxm4_80")));
    return frameworks();
  }

  /// Calls timed inside a framework: as nccl-tests would time them, and with what the call adds;
  /// the latter on rows that it does not come from, and on each source from the two others.
  Status frameworks() {
    const std::vector<FrameworkCalls> sources = TRY(read_framework_calls(data_));
    const Calibrated a100 = *comm::calibration_for("a100_sxm4_80");
    CollectiveCase unseen{
        .name = "framework timing, from other sources",
        .about = "Vidur, Galvatron and AICB, each with what the two others say a call adds"};
    for (const FrameworkCalls& source : sources) {
      Rows all = source.fitted;
      all.insert(all.end(), source.blind.begin(), source.blind.end());
      CollectiveCase plain{.name = source.name,
                           .about = source.about + "; priced as nccl-tests would time it"};
      score(plain, a100, all);
      add(std::move(plain));
      CollectiveCase timed{.name = source.name + ", framework timing",
                           .about = "every second row, with what the others say a call adds"};
      score(timed, a100, source.blind, comm::framework_timing());
      add(std::move(timed));
      std::vector<FrameworkCalls> others;
      for (const FrameworkCalls& other : sources)
        if (other.name != source.name) others.push_back(other);
      const comm::FrameworkTiming timing = TRY(fit_framework_calls(others, a100.calibration));
      score(unseen, a100, all, timing);
    }
    add(std::move(unseen));
    return {};
  }

  /// Fitted to some numbers of ranks, tested on another.
  Status ranks() {
    for (const std::uint32_t tested : {4U, 8U}) {
      const std::string from = tested == 4 ? "2 and 8" : "2 and 4";
      CollectiveCase rings{.name = fmt::format("nvlink, {} ranks from {}", tested, from),
                           .about = "all_reduce, all_gather, reduce_scatter"};
      CollectiveCase pairs{
          .name = fmt::format("nvlink, all_to_all, {} ranks from {}", tested, from),
          .about = "all_to_all"};
      for (const std::string_view device : kNvlinkDevices) {
        const Measured& m = *find(device);
        Rows kept, ring_rows, pair_rows;
        for (const MeasuredRow& r : collectives_of(m))
          (r.ranks != tested                     ? kept
           : r.kind == CollectiveKind::kAllToAll ? pair_rows
                                                 : ring_rows)
              .push_back(r);
        const Calibration fitted = TRY(comm::fit(m.request, kept));
        score(rings, {.calibration = fitted}, ring_rows);
        score(pairs, {.calibration = fitted}, pair_rows);
      }
      add(std::move(rings));
      add(std::move(pairs));
    }
    return {};
  }

  /// Fitted to one device, tested on another.
  Status devices() {
    const std::pair<std::string_view, std::string_view> siblings[] = {{"b200_sxm_180", "b300"},
                                                                      {"b300", "b200_sxm_180"}};
    CollectiveCase sibling{.name = "nvlink, from its sibling",
                           .about = "B200 from B300 and B300 from B200"};
    for (const auto& [from, to] : siblings)
      score(sibling, carried(from, to, 1, 1.4), find(to)->rows);
    add(std::move(sibling));
    return generations();
  }

  Calibrated carried(std::string_view from, std::string_view to, double ratio, double widen) const {
    const comm::FitRequest& onto = find(to)->request;
    return comm::carried_over(comm::calibration_for(from)->calibration,
                              {std::string(to), onto.generation, onto.links, ratio}, widen);
  }

  /// A type from each type of another generation, as it is and with its latencies set by one small
  /// all_reduce. Widths are the 90 % quantiles of the factors seen on the other two
  /// types when these were left out.
  Status generations() {
    const std::pair<std::string_view, double> types[] = {
        {"a100_sxm4_80", 300}, {"h100_sxm5_80", 450}, {"b200_sxm_180", 900}};
    CollectiveCase left_out{
        .name = "nvlink, from another generation",
        .about =
            "A100, H100 and B200 from each other; bandwidth by the ratio of NVLinks, latencies "
            "as they are; widths from the errors on the two types that are not tested, each "
            "from both others. This "
            "program does so for no shipped device"};
    CollectiveCase anchored{.name = "nvlink, another generation, one small all_reduce",
                            .about = "the same, latencies by one all_reduce of 8 KiB on 8 ranks"};
    for (const auto& [from, from_rate] : types)
      for (const auto& [to, to_rate] : types) {
        if (from == to) continue;
        const Calibrated as_it_is = carried(from, to, to_rate / from_rate, 1);
        score(left_out, as_it_is, collectives_of(*find(to)));
        const auto is_anchor = [](const MeasuredRow& r) {
          return r.kind == CollectiveKind::kAllReduce && r.ranks == 8 && r.size == Bytes::kib(8);
        };
        Rows tested = collectives_of(*find(to));
        const auto anchor = std::find_if(tested.begin(), tested.end(), is_anchor);
        if (anchor == tested.end()) continue;
        const Calibrated scaled =
            TRY(comm::anchored(as_it_is, {.kind = CollectiveKind::kAllReduce, .ranks = 8},
                               anchor->size, anchor->time));
        tested.erase(anchor);
        score(anchored, scaled, tested);
      }
    for (CollectiveCase* c : {&left_out, &anchored}) set_nested_widths(c->rows);
    add(std::move(left_out));
    add(std::move(anchored));
    return {};
  }

  /// Intervals of each row from the factors between price and time on other devices than its own,
  /// by band, all_to_all apart.
  static void set_nested_widths(std::vector<PricedRow>& rows) {
    const auto group_of = [](const PricedRow& r) {
      return std::tuple(r.device, r.row.kind == CollectiveKind::kAllToAll,
                        comm::band_of(r.row.size.b()));
    };
    std::map<std::tuple<std::string, bool, std::size_t>, std::vector<double>> others;
    for (const PricedRow& tested : rows) {
      std::vector<double>& factors = others[group_of(tested)];
      if (!factors.empty()) continue;
      for (const PricedRow& r : rows)
        if (r.device != tested.device &&
            group_of(r) ==
                std::tuple(r.device, std::get<1>(group_of(tested)), std::get<2>(group_of(tested))))
          factors.push_back(std::max(r.price / r.row.time, r.row.time / r.price));
      std::sort(factors.begin(), factors.end());
    }
    for (PricedRow& r : rows) {
      const std::vector<double>& factors = others[group_of(r)];
      if (factors.empty()) continue;  // no other device has such a row: its own interval stays
      const double factor =
          factors[static_cast<std::size_t>(0.9 * static_cast<double>(factors.size() - 1))];
      r.low = r.price * (1 / factor);
      r.high = r.price * factor;
    }
  }

  /// V100: each number of ranks from the others, by counting rings.
  Status rings() {
    const Measured& m = *find("v100_sxm2_16");
    CollectiveCase scored{.name = "v100, ranks left out",
                          .about = "each of 2, 4, 6, 8 ranks from the others, by counting rings"};
    for (const std::uint32_t tested : {2U, 4U, 6U, 8U}) {
      Rows kept, rest;
      for (const MeasuredRow& r : m.fitted)
        if (r.ranks != tested) kept.push_back(r);
      for (const MeasuredRow& r : m.rows)
        if (r.ranks == tested) rest.push_back(r);
      const Calibration fitted = TRY(comm::fit(m.request, kept));
      score(scored, {.calibration = fitted}, rest);
    }
    add(std::move(scored));
    return {};
  }

  Status nodes() { return price_nodes(data_, accuracy_); }

  /// NCCL's choice against the split of each measured curve that the pieces explain best. A point
  /// counts as wrong where the best split puts it on the other side and explains the rows between
  /// by more than 3 % each, which is the noise.
  void protocols(const Measured& m) {
    constexpr double kNoise = 0.03;
    const Calibrated calibrated = *comm::calibration_for(m.request.device);
    std::map<std::pair<CollectiveKind, std::uint32_t>, Rows> curves;
    for (const MeasuredRow& r : m.rows)
      if (r.kind != CollectiveKind::kAllToAll && r.kind != CollectiveKind::kSendRecv)
        curves[{r.kind, r.ranks}].push_back(r);
    for (auto& [key, rows] : curves) {
      std::sort(rows.begin(), rows.end(),
                [](const MeasuredRow& a, const MeasuredRow& b) { return a.size < b.size; });
      const comm::Group group{.kind = key.first, .ranks = key.second};
      const auto cost = [&](const comm::NcclOverrides& o) {
        return *CollectiveCost::resolve(calibrated, group, o);
      };
      const CollectiveCost full = cost({}), simple = cost({.protocol = comm::Protocol::kSimple}),
                           ll = cost(
                               {.algorithm = Algorithm::kRing, .protocol = comm::Protocol::kLl}),
                           ll128 = cost(
                               {.algorithm = Algorithm::kRing, .protocol = comm::Protocol::kLl128});
      std::vector<double> low, high;
      std::size_t chosen = 0;
      for (const MeasuredRow& r : rows) {
        const bool is_simple = full.at(r.size).protocol == comm::Protocol::kSimple;
        if (!is_simple) ++chosen;
        const double t = r.time.s(), a = ll.seconds(r.size.b()), b = ll128.seconds(r.size.b());
        low.push_back(std::min(std::abs(a / t - 1), std::abs(b / t - 1)));
        high.push_back(std::abs(simple.seconds(r.size.b()) / t - 1));
      }
      const auto loss = [&, &rows = rows](std::size_t split) {
        double sum = 0;
        for (std::size_t i = 0; i < rows.size(); ++i) sum += i < split ? low[i] : high[i];
        return sum;
      };
      std::size_t best = chosen;
      for (std::size_t split = 0; split <= rows.size(); ++split) {
        const double moved = std::abs(static_cast<double>(split) - static_cast<double>(chosen));
        if (loss(split) + kNoise * moved < loss(best)) best = split;
      }
      accuracy_.protocol_points += rows.size();
      const std::size_t wrong = best > chosen ? best - chosen : chosen - best;
      accuracy_.protocol_right += rows.size() - wrong;
      if (wrong > 0)
        accuracy_.protocol_wrong.push_back(fmt::format(
            "{} {} on {} ranks: {}, {} from {} on", m.request.device, to_string(key.first),
            key.second, counted(wrong, "size"), best > chosen ? "Simple" : "LL or LL128",
            to_string(rows[std::min(best, chosen)].size)));
    }
  }

  fs::path data_;
  CollectiveAccuracy& accuracy_;
  std::vector<Measured> measured_;
};

}  // namespace

ErrorSummary summarize_errors(const std::vector<PricedRow>& rows, std::optional<std::size_t> band,
                              std::optional<CollectiveKind> kind) {
  ErrorSummary s;
  std::vector<double> errors;
  for (const PricedRow& r : rows) {
    if (band && comm::band_of(r.row.size.b()) != *band) continue;
    if (kind && r.row.kind != *kind) continue;
    ++s.rows;
    s.covered += r.covered();
    s.bias += r.error();
    s.mean += std::abs(r.error());
    errors.push_back(std::abs(r.error()));
  }
  if (errors.empty()) return s;
  std::sort(errors.begin(), errors.end());
  const auto n = static_cast<double>(errors.size());
  s.p90 = errors[static_cast<std::size_t>(0.9 * (n - 1))];
  s.bias /= n;
  s.mean /= n;
  return s;
}

Result<CollectiveAccuracy> measure_collective_accuracy(const fs::path& data) {
  CollectiveAccuracy accuracy;
  TRY(Validator(data, accuracy).run());
  return accuracy;
}

}  // namespace rehearse::cli
