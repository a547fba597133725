#include "cli/output/method.h"

#include <algorithm>
#include <array>
#include <string>

#include <fmt/core.h>

#include "sim/base/text.h"

namespace rehearse::cli {
namespace {

/// An option, or an entry of the input file, with which the answer would be another.
struct Change {
  std::string_view what, effect;
  std::string_view commands = {};  ///< those that offer it, separated by spaces; empty: all
};

struct Row {
  std::string_view name, meaning;
  std::array<Change, 4> changes = {};
};

constexpr std::string_view kWithFidelity = "simulate plan compare network";
constexpr Change kCalibrate = {"rehearse calibrate job",
                               "corrects predictions by a measured step of the job",
                               "simulate plan recommend"};

/// In the order of Method.
constexpr std::array kMethods = {
    Row{"closed",
        "collectives take the time of a calibration or of a closed form, and share no links",
        {{{"--fidelity message", "simulates them as messages that share links", kWithFidelity},
          {"fidelity: message", "simulates them as messages that share links", "study"},
          {"rehearse simulate JOB", "predicts one job with messages that share links", "validate"},
          kCalibrate}}},
    Row{"message",
        "collectives are simulated as messages that share links, max-min fair",
        {{{"--fidelity simgrid", "shares the links as SimGrid does, which takes longer",
           kWithFidelity},
          {"--fidelity closed", "is faster, and shares no links", kWithFidelity},
          kCalibrate}}},
    Row{"simgrid",
        "collectives are simulated as messages that share links as in SimGrid",
        {{{"--fidelity message", "shares the links max-min fair, and is faster", kWithFidelity},
          kCalibrate}}},
    Row{"recorded",
        "ops keep their recorded durations, and start by the rules of replay",
        {{{"--residuals", "keeps every unexplained delay", "replay whatif"}}}},
    Row{"edited",
        "the edits change ops and durations; everything else stays as recorded",
        {{{"rehearse simulate with workload: {recording: FILE}",
           "predicts the recorded model under another plan"}}}},
    Row{"search",
        "closed forms rank all plans; the best are run",
        {{{"--thorough", "runs more of them", "plan"},
          {"--risk N", "ranks by the values that are not exceeded with probability N"}}}},
    Row{"server search",
        "bounds rule out settings; the others are simulated",
        {{{"--objective NAME", "ranks by another figure", "plan"}}}},
    Row{"offers",
        "bounds rule out offers; the best plan is searched on each of the others",
        {{{"--counts N,...", "tries other numbers of instances"},
          {"--prices FILE", "replaces the prices of the catalog"}}}},
    Row{"server",
        "the server's steps are simulated one by one, at prices fitted to published runs",
        {{{"load: {trace: FILE}", "replays recorded requests instead of random ones"},
          {"load: {seed: N}", "draws other random requests"}}}},
    Row{"scheduler",
        "each job holds its GPUs for the work in the list; jobs on one node do not slow each other "
        "down",
        {{{"--slices", "puts small jobs on MIG slices"},
          {"--policy NAME, --placement NAME", "schedule in another way"}}}},
    Row{"packing",
        "slowdowns come from measured pairs where the file has them, else from a model",
        {{{"--measure N", "lists the pairs whose measurement would help most"},
          {"pairs: [...]", "adds measured pairs"}}}},
    Row{"slices",
        "a law fitted to the measured steps gives the time on each slice",
        {{{"more measured batch sizes", "determine the law more closely"}}}},
    Row{"tenants",
        "the ops of both jobs share the device by the policy",
        {{{"--share POLICY", "shares it in another way"}}}},
    Row{"input",
        "the stages are simulated unit by unit, with the times that the file states",
        {{{"--measure DIR", "measures reading and decoding on this machine"}}}},
    Row{"dataflow", "kernels run one after another, each at the time of its cost law", {}},
    Row{"memory",
        "weights, gradients, states and activations of a rank are added up at the peak of its step",
        {{{"columns such as workload.attention",
           "state the implementation of the job, which is otherwise assumed"}}}},
    Row{"operations",
        "the cost laws of the GPU's recorded operations give their times, else a roofline",
        {{{"rehearse bench-gpu", "measures operations on this machine's GPUs"}}}},
    Row{"pairs",
        "the law that was fitted to measured pairs on the GPU gives the shares of others; without "
        "one, jobs take turns",
        {{{"rehearse pack", "takes measured pairs where its file has them"}}}},
    Row{"recorded steps",
        "the recorded steps and ops of the runs are compared; nothing is simulated",
        {{{"more steps in each recording", "narrow the interval of every change"},
          {"--history FILE", "compares with the level of earlier runs, and finds drifts"}}}},
    Row{"proof",
        "the programs of a pair run here by turns; its edit predicts one from a recording of the "
        "other",
        {{{"--rounds N", "measures more or fewer rounds"}}}},
    Row{"layouts",
        "NVIDIA's rules of placement, as in the catalog, give the layouts; nothing is simulated",
        {{{"--profiles NAME,...", "asks for these instances"}}}},
    Row{"fit",
        "the cost law of collectives is fitted to the rows of the logs",
        {{{"logs of more sizes, ranks and collectives", "widen the range that it interpolates"}}}},
};

bool offered(const Change& change, std::string_view command) {
  if (change.what.empty()) return false;
  if (change.commands.empty()) return true;
  const std::vector<std::string_view> all = split(change.commands, ' ');
  return std::ranges::find(all, command) != all.end();
}

const Row& row_of(Method method) { return kMethods[static_cast<std::size_t>(method)]; }

}  // namespace

std::optional<Method> method_named(std::string_view name) {
  const auto found = std::ranges::find(kMethods, name, &Row::name);
  if (found == kMethods.end()) return std::nullopt;
  return static_cast<Method>(found - kMethods.begin());
}

Value method_fields(const std::vector<Method>& methods, std::string_view command) {
  Value list = Value::array();
  for (const Method method : methods) {
    const Row& row = row_of(method);
    Value changes = Value::array();
    for (const Change& change : row.changes)
      if (offered(change, command))
        changes.push_back({{"change", change.what}, {"effect", change.effect}});
    list.push_back({{"name", row.name}, {"meaning", row.meaning}, {"changes", std::move(changes)}});
  }
  return list;
}

std::vector<std::string> method_lines(const std::vector<Method>& methods,
                                      std::string_view command) {
  std::vector<std::string> lines;
  for (const Method method : methods) {
    const Row& row = row_of(method);
    lines.push_back(fmt::format("  {}: {}", row.name, row.meaning));
    for (const Change& change : row.changes)
      if (offered(change, command))
        lines.push_back(fmt::format("    {} {}", change.what, change.effect));
  }
  return lines;
}

}  // namespace rehearse::cli
