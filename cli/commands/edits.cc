#include "cli/commands/edits.h"

#include <fmt/core.h>

#include "cli/commands/kernel_laws.h"
#include "cli/commands/pass_edits.h"
#include "profiler/replay/edit.h"
#include "profiler/replay/fewer_launches.h"
#include "profiler/replay/overlap.h"

namespace rehearse::cli {
namespace {

using replay::RecordedProgram;

/// The check of an option by the function that reads it.
template <auto read>
Status reads(const std::string& text) {
  TRY(read(text));
  return {};
}

/// An edit that assumes nothing: `read` makes its argument, and `edit` applies it.
template <auto read, auto edit>
Result<RecordedProgram> apply(const ReplayJob& job, const std::string& text,
                              RecordedProgram program, Bound, const Globals&) {
  return edit(job.recordings, std::move(program), *read(text));
}

Result<replay::MaybeTimed> parse_graph(std::string_view text) {
  Result<replay::MaybeTimed> graph = replay::parse_maybe_timed(text);
  if (graph && graph->what.target != replay::Selector::Target::kRange)
    return fail(fmt::format("'{}' is not a range", graph->what.text), "range=PATTERN[:DURATION]");
  return graph;
}

/// The host's time for the launch of a graph: 10 us and 3 us per kernel, as one launch of 540
/// kernels on MI300X took; the interval is that of `cuda_graphs` in models/host.
constexpr double kGraphLaunch = 10e-6, kGraphKernel = 3e-6;
constexpr double kGraphFastest = 0.3, kGraphSlowest = 2;

Result<RecordedProgram> as_graph(const ReplayJob& job, const std::string& text,
                                 RecordedProgram program, Bound bound, const Globals&) {
  const replay::MaybeTimed graph = *parse_graph(text);
  const double factor = bound == Bound::kLow    ? kGraphFastest
                        : bound == Bound::kHigh ? kGraphSlowest
                                                : 1;
  return replay::launch_as_graph(
      job.recordings, std::move(program), graph.what, [&](std::size_t kernels) {
        return graph.time.value_or(
            Seconds::s(factor * (kGraphLaunch + kGraphKernel * static_cast<double>(kernels))));
      });
}

/// Another size of the passes of a step.
template <PassExtent extent>
Result<RecordedProgram> resize(const ReplayJob& job, const std::string& text,
                               RecordedProgram program, Bound bound, const Globals& globals) {
  return resize_passes(job, std::move(program), extent, *parse_count(text), bound, globals);
}

std::string resized(const std::string&) {
  return "passes of another size: times by the ratio of the cost laws; messages of activations by "
         "the recorded times of their group; copies to the device, and loading of more samples, in "
         "proportion, at least as recorded; other work of the host as recorded";
}

std::string if_untimed(const std::string& text, const char* assumption) {
  return replay::parse_maybe_timed(text)->time ? "" : assumption;
}

constexpr NamedEdit kEdits[] = {
    {"--remove", "TARGET[=PATTERN], remove ops and the calls that launch them",
     reads<replay::parse_selector>, apply<replay::parse_selector, replay::remove>},
    {"--dtype",
     "TARGET[=PATTERN]:FORMAT, run kernels in fp32, tf32, fp16, bf16 or fp8, with casts; times by "
     "the "
     "cost model of the recorded GPU",
     reads<parse_format_edit>,
     [](const ReplayJob& job, const std::string& text, RecordedProgram program, Bound bound,
        const Globals& globals) {
       return in_format(job, std::move(program), *parse_format_edit(text), bound, globals);
     },
     [](const std::string&) {
       return std::string(
           "another number format: times change by the ratio of the cost models; operators cast "
           "their weights and the inputs that no selected operator made; FP8 products quantise "
           "their inputs in separate kernels; the host's time for casts is not included");
     }},
    {"--samples", "N samples per microbatch; kernel times by the cost model of the recorded GPU",
     reads<parse_count>, resize<PassExtent::kSamples>, resized, true},
    {"--sequence", "N tokens per sample; kernel times by the cost model of the recorded GPU",
     reads<parse_count>, resize<PassExtent::kTokens>, resized, true},
    {"--accumulation",
     "N microbatches per update; the simulated step keeps the recorded number of microbatches, "
     "with "
     "their share of the update and of the gradient collectives",
     reads<parse_count>,
     [](const ReplayJob& job, const std::string& text, RecordedProgram program, Bound,
        const Globals&) { return accumulate(job, std::move(program), *parse_count(text)); },
     [](const std::string& text) {
       return fmt::format(
           "accumulation: the step is that part of {} passes and their update which has as many "
           "passes as were recorded",
           text);
     },
     true},
    {"--recompute",
     "range=PATTERN, recompute the forward pass of each instance in the backward pass",
     reads<parse_range>,
     [](const ReplayJob& job, const std::string& text, RecordedProgram program, Bound,
        const Globals&) { return recompute_range(job, std::move(program), *parse_range(text)); }},
    {"--keep",
     "range=PATTERN, keep the activations of these checkpoints instead of recomputing them",
     reads<parse_range>,
     [](const ReplayJob& job, const std::string& text, RecordedProgram program, Bound,
        const Globals&) { return keep_range(job, std::move(program), *parse_range(text)); }},
    {"--replace",
     "TARGET[=PATTERN]:DURATION, each matching kernel, copy, collective or range of the host lasts "
     "this long",
     reads<replay::parse_timed>, apply<replay::parse_timed, replay::replace>},
    {"--scale",
     "TARGET[=PATTERN]:FACTOR, multiply times by FACTOR; targets: gpu, kernel, copy, collective, "
     "host, range, launch, profiler; * in PATTERN matches any text",
     reads<replay::parse_scale>, apply<replay::parse_scale, replay::scale>},
    {"--straggler",
     "RANK:FACTOR, multiply the time of a rank's own work; RANK:none, its ops take the mean time "
     "of the other ranks",
     reads<replay::parse_straggler>, apply<replay::parse_straggler, replay::straggle>},
    {"--fuse",
     "TARGET[=PATTERN][:DURATION], fuse consecutive matching kernels (default time: by the bytes "
     "that "
     "the fused kernel moves; attention by its cost model)",
     reads<replay::parse_maybe_timed>,
     [](const ReplayJob& job, const std::string& text, RecordedProgram program, Bound bound,
        const Globals&) {
       return fuse_kernels(job, std::move(program), *replay::parse_maybe_timed(text), bound);
     },
     [](const std::string& text) {
       return if_untimed(text,
                         "fused kernels: time by the bytes that they move, between the longest of "
                         "them and all of them; attention by its law");
     }},
    {"--graph",
     "range=PATTERN[:DURATION], launch each instance of a range as a CUDA graph (default: 10 us "
     "and 3 us per kernel)",
     reads<parse_graph>, as_graph,
     [](const std::string& text) {
       return if_untimed(text,
                         "CUDA graphs: a launch takes the host 10 us and 3 us per kernel, 0.3 to 2 "
                         "times as long on another host");
     }},
    {"--insert", "TARGET[=PATTERN]:DURATION, add time after each op or range, such as 50 us",
     reads<replay::parse_timed>, apply<replay::parse_timed, replay::insert>},
    {"--asynchronous",
     "TARGET[=PATTERN], make these copies or host calls asynchronous, so that they do not wait for "
     "the device",
     reads<replay::parse_selector>, apply<replay::parse_selector, replay::make_asynchronous>},
    {"--own-stream",
     "TARGET[=PATTERN][:TARGET[=PATTERN]], move device ops to a stream of their own, until the ops "
     "that need their results (default: until the end of the step)",
     reads<replay::parse_own_stream>,
     [](const ReplayJob& job, const std::string& text, RecordedProgram program, Bound bound,
        const Globals&) {
       return replay::move_to_stream(
           job.recordings, std::move(program), *replay::parse_own_stream(text),
           bound == Bound::kHigh ? replay::Needed::kAtOnce : replay::Needed::kAtEndOfStep);
     },
     [](const std::string& text) {
       return std::string(replay::parse_own_stream(text)->needed_by
                              ? ""
                              : "ops on a stream of their own: their results are needed at the end "
                                "of the step; the upper bound needs them at once");
     }},
};

}  // namespace

std::span<const NamedEdit> named_edits() { return kEdits; }

}  // namespace rehearse::cli
