#include <array>
#include <filesystem>

#include <fmt/format.h>

#include "cli/commands/served_load.h"
#include "cli/commands/simulate_serving.h"
#include "cli/config/job_file.h"
#include "cli/output/document.h"
#include "sim/base/text.h"
#include "sim/serving/tenants.h"

namespace rehearse::cli {
namespace {

using serving::Measures;

Status check_server(const ServeFile& file) {
  const serving::Deployment& d = file.deployment;
  if (file.prefill || file.scaling || d.plan.data > 1)
    return fail("a server that shares its GPUs has one replica and one pool",
                "a job without `data`, `scaling` and `prefill`");
  return {};
}

Status check_together(const ServedLoad& a, const ServedLoad& b) {
  const serving::Deployment &first = a.file.deployment, &second = b.file.deployment;
  if (first.device != second.device || a.file.devices != b.file.devices)
    return fail(fmt::format("the servers run on {} × {} and on {} × {}", a.file.devices,
                            first.device, b.file.devices, second.device),
                "the same GPUs for both");
  if (const Bytes all = a.space.total() + b.space.total(); all > a.space.usable)
    return fail(fmt::format("the servers take {:.1f} and {:.1f} GiB of the {:.1f} GiB of a GPU",
                            a.space.total().gib(), b.space.total().gib(), a.space.usable.gib()),
                "flags: {memory: 0.45} in both jobs, or other shares");
  return {};
}

/// The servers' turns; nothing if they run together.
Result<std::optional<serving::Turns>> turns_of(const ShareRequest& request,
                                               std::vector<std::string>& notes) {
  const sharing::Sharing policy = sharing_of(request, notes);
  if (policy.policy == sharing::Policy::kTimeSlice)
    return serving::Turns{.quantum = policy.quantum, .change = policy.change};
  if (policy.policy == sharing::Policy::kMps && policy.caps.empty()) return std::nullopt;
  return fail(fmt::format("servers do not share GPUs by {}", request.share),
              "--share mps, or --share timeslice");
}

/// A load alone, and with the other one: at the price, and at its high end. Nothing is faster than
/// alone at the low end of the price.
struct Shared {
  const ServedLoad& alone;
  std::array<Measures, 2> with;

  template <class Of>
  Estimate<Seconds> time(const Of& of) const {
    const auto at = [&](const Measures& m) { return Seconds::s(of(m)); };
    return {at(with[0]), std::min(at(with[0]), at(alone.measures[1])),
            std::max(at(with[0]), at(with[1])), Provenance::kExtrapolated};
  }
  Estimate<double> tokens_per_s() const {
    const auto at = [](const Measures& m) { return m.output_tokens / m.duration; };
    return {at(with[0]), std::min(at(with[0]), at(with[1])),
            std::max(at(with[0]), at(alone.measures[1])), Provenance::kExtrapolated};
  }
};

Value fields_of(const Shared& s, const std::filesystem::path& job) {
  Value row = {{"", "server", s.alone.file.deployment.model.name}};
  row["job"] = job.filename().string();
  const auto add = [&](std::string_view key, std::string_view label, Estimate<Seconds> alone,
                       const Estimate<Seconds>& shared) {
    row[key] = {{"alone", alone}, {"shared", shared}};
    row.show("", fmt::format("{} alone", label), alone, in::kMs);
    row.show("", fmt::format("{} shared", label), shared, in::kMs);
  };
  using serving::Spread;
  add("ttft", "TTFT", s.alone.ttft(&Spread::mean),
      s.time([](const Measures& m) { return m.ttft.mean; }));
  add("ttft_p99", "P99 TTFT", s.alone.ttft(&Spread::p99),
      s.time([](const Measures& m) { return m.ttft.p99; }));
  add("tpot", "TPOT", s.alone.mean_tpot(), s.time([](const Measures& m) { return m.tpot.mean; }));
  row["tokens_per_s"] = {{"alone", Quantity(s.alone.tokens_per_s(), unit::kTokens)},
                         {"shared", Quantity(s.tokens_per_s(), unit::kTokens)}};
  row.show("", "tokens/s shared", Quantity(s.tokens_per_s(), unit::kTokens), {"1/s", 1, 4});
  return row;
}

std::string words_of(const Shared& s) {
  return fmt::format("{} TTFT {} instead of {}, TPOT {} instead of {}",
                     s.alone.file.deployment.model.name,
                     to_string(s.time([](const Measures& m) { return m.ttft.mean; }).value),
                     to_string(Seconds::s(s.alone.measures[0].ttft.mean)),
                     to_string(s.time([](const Measures& m) { return m.tpot.mean; }).value),
                     to_string(Seconds::s(s.alone.measures[0].tpot.mean)));
}

/// With times of both at this end of their intervals.
Result<std::array<Measures, 2>> together(const ServedLoad& a, const ServedLoad& b, bool high,
                                         const std::optional<serving::Turns>& turns) {
  std::vector<serving::Tenant> tenants;
  for (const ServedLoad* load : {&a, &b}) {
    serving::Rules rules = load->file.rules;
    rules.blocks = load->space.blocks;
    rules.tiers = load->space.tiers;
    tenants.push_back({.rules = rules,
                       .pricer = load->price,
                       .requests = load->file.requests,
                       .options = {.most_in_flight = load->file.in_flight,
                                   .scale = high ? load->reach().high : 1}});
  }
  const std::vector<serving::Run> runs = TRY(serving::run_tenants(tenants, turns));
  const std::array both{serving::measure(std::span(runs).first(1)),
                        serving::measure(std::span(runs).last(1))};
  if (both[0].requests == 0 || both[1].requests == 0)
    return fail("all requests of a server leave at their deadlines where it shares its GPU",
                "later deadlines, or fewer requests");
  return both;
}

}  // namespace

Result<Exit> share_servers(const SimulateOptions& options, const Globals& globals) {
  const std::filesystem::path& other = options.sharing.shared_with;
  std::vector<std::string> notes;
  const std::optional<serving::Turns> turns = TRY(turns_of(options.sharing, notes));
  const ServeFile first = TRY(load_serve_file(options.job_file, options.cluster)),
                  second = TRY(load_serve_file(other, options.cluster));
  if (const Status ok = check_server(first); !ok) return wrong_in(options.job_file, ok.error());
  if (const Status ok = check_server(second); !ok) return wrong_in(other, ok.error());
  const Result<ServedLoad> a = serve(first), b = serve(second);
  if (!a) return wrong_in(options.job_file, a.error());
  if (!b) return wrong_in(other, b.error());
  if (const Status ok = check_together(*a, *b); !ok) return wrong_in(options.job_file, ok.error());
  const auto usual = together(*a, *b, false, turns), slow = together(*a, *b, true, turns);
  if (!usual) return wrong_in(options.job_file, usual.error());
  if (!slow) return wrong_in(options.job_file, slow.error());
  const Shared one{*a, {(*usual)[0], (*slow)[0]}}, two{*b, {(*usual)[1], (*slow)[1]}};

  Document d{.command = "simulate", .rows = "servers", .rows_title = "Servers"};
  d.methods = {Method::kServer, Method::kTenants};
  const std::string by =
      turns ? fmt::format("in turns of {}", to_string(turns->quantum)) : "together (MPS)";
  d.answer = sentence_of(
      fmt::format("two servers {} on {} × {}", by, first.devices, first.deployment.device),
      {words_of(one), words_of(two)});
  d["device"] = first.deployment.device;
  d["devices"] = first.devices;
  d["sharing"] = turns ? "timeslice" : "mps";
  Value rows = Value::array();
  rows.push_back(fields_of(one, options.job_file));
  rows.push_back(fields_of(two, other));
  d.show("servers", "Servers", std::move(rows));
  d["notes"] = notes;
  if (!notes.empty()) d.show("", "Notes", notes);
  return answer_with(globals, d, Exit::kSuccess, {.inputs = {options.job_file, other}});
}

}  // namespace rehearse::cli
