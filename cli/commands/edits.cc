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

template <auto read>
auto all_of(Texts texts) {
  std::vector<typename decltype(read(std::string_view()))::value_type> all;
  for (const std::string& text : texts) all.push_back(*read(text));
  return all;
}

/// An edit that assumes nothing: `read` makes its argument, and `edit` applies it.
template <auto read, auto edit>
Result<RecordedProgram> apply(const ReplayJob& job, Texts texts, RecordedProgram program, Bound,
                              const Globals&) {
  return edit(job.recordings, std::move(program), *read(texts.front()));
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

Result<RecordedProgram> as_graph(const ReplayJob& job, Texts texts, RecordedProgram program,
                                 Bound bound, const Globals&) {
  const replay::MaybeTimed graph = *parse_graph(texts.front());
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
Result<RecordedProgram> resize(const ReplayJob& job, Texts texts, RecordedProgram program,
                               Bound bound, const Globals& globals) {
  return resize_passes(job, std::move(program), extent, *parse_count(texts.front()), bound,
                       globals);
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
    {"--dtype",
     "TARGET[=PATTERN]:FORMAT, run kernels in fp32, tf32, fp16, bf16 or fp8, with casts; times by "
     "the "
     "cost model of the recorded GPU",
     reads<parse_format_edit>,
     [](const ReplayJob& job, Texts texts, RecordedProgram program, Bound bound,
        const Globals& globals) {
       return in_format(job, std::move(program), all_of<parse_format_edit>(texts), bound, globals);
     },
     [](const std::string&) {
       return std::string(
           "another number format: times change by the ratio of the cost models; operators cast "
           "their weights and the inputs that no selected operator made; FP8 products quantise "
           "their inputs in separate kernels; the host's time for casts is not included");
     },
     NamedEdit::Given::kTogether, true},
    {"--samples", "N samples per microbatch; kernel times by the cost model of the recorded GPU",
     reads<parse_count>, resize<PassExtent::kSamples>, resized, NamedEdit::Given::kOnce, true},
    {"--sequence", "N tokens per sample; kernel times by the cost model of the recorded GPU",
     reads<parse_count>, resize<PassExtent::kTokens>, resized, NamedEdit::Given::kOnce, true},
    {"--remove", "TARGET[=PATTERN], remove ops and the calls that launch them",
     reads<replay::parse_selector>, apply<replay::parse_selector, replay::remove>},
    {"--keep",
     "range=PATTERN, keep the activations of these checkpoints instead of recomputing them",
     reads<parse_range>,
     [](const ReplayJob& job, Texts texts, RecordedProgram program, Bound, const Globals&) {
       return keep_range(job, std::move(program), *parse_range(texts.front()));
     }},
    {"--replace",
     "TARGET[=PATTERN]:DURATION, each matching kernel, copy, collective or range of the host lasts "
     "this long",
     reads<replay::parse_timed>, apply<replay::parse_timed, replay::replace>},
    {"--fuse",
     "TARGET[=PATTERN][:DURATION], fuse consecutive matching kernels (default time: by the bytes "
     "that "
     "the fused kernel moves; attention by its cost model)",
     reads<replay::parse_maybe_timed>,
     [](const ReplayJob& job, Texts texts, RecordedProgram program, Bound bound, const Globals&) {
       return fuse_kernels(job, std::move(program), *replay::parse_maybe_timed(texts.front()),
                           bound);
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
    {"--accumulation",
     "N microbatches per update; a simulated step has the recorded number of them, with the same "
     "share "
     "of the update and of the gradient collectives",
     reads<parse_count>,
     [](const ReplayJob& job, Texts texts, RecordedProgram program, Bound, const Globals&) {
       return accumulate(job, std::move(program), *parse_count(texts.front()));
     },
     [](const std::string& text) {
       return fmt::format(
           "accumulation: the step is that part of {} passes and their update which has as many "
           "passes as were recorded",
           text);
     },
     NamedEdit::Given::kOnce},
    {"--scale",
     "TARGET[=PATTERN]:FACTOR, multiply times by FACTOR; targets: gpu, kernel, copy, collective, "
     "host, range, launch, profiler; * in PATTERN matches any text",
     reads<replay::parse_scale>, apply<replay::parse_scale, replay::scale>},
    {"--straggler",
     "RANK:FACTOR, multiply the time of a rank's own work; RANK:none, its ops take the mean time "
     "of the other ranks",
     reads<replay::parse_straggler>,
     [](const ReplayJob& job, Texts texts, RecordedProgram program, Bound, const Globals&) {
       return replay::straggle(job.recordings, std::move(program),
                               all_of<replay::parse_straggler>(texts));
     },
     assumes_nothing, NamedEdit::Given::kTogether},
    {"--insert", "TARGET[=PATTERN]:DURATION, add time after each op or range, such as 50 us",
     reads<replay::parse_timed>, apply<replay::parse_timed, replay::insert>},
    {"--recompute",
     "range=PATTERN, recompute the forward pass of each instance in the backward pass",
     reads<parse_range>,
     [](const ReplayJob& job, Texts texts, RecordedProgram program, Bound, const Globals&) {
       return recompute_range(job, std::move(program), *parse_range(texts.front()));
     }},
    {"--asynchronous",
     "TARGET[=PATTERN], make these copies or host calls asynchronous, so that they do not wait for "
     "the device",
     reads<replay::parse_selector>, apply<replay::parse_selector, replay::make_asynchronous>},
    {"--own-stream",
     "TARGET[=PATTERN][:TARGET[=PATTERN]], move device ops to a stream of their own, until the ops "
     "that need their results (default: until the end of the step)",
     reads<replay::parse_own_stream>,
     [](const ReplayJob& job, Texts texts, RecordedProgram program, Bound bound, const Globals&) {
       return replay::move_to_streams(
           job.recordings, std::move(program), all_of<replay::parse_own_stream>(texts),
           bound == Bound::kHigh ? replay::Needed::kAtOnce : replay::Needed::kAtEndOfStep);
     },
     [](const std::string& text) {
       return std::string(replay::parse_own_stream(text)->needed_by
                              ? ""
                              : "ops on a stream of their own: their results are needed at the end "
                                "of the step; the upper bound needs them at once");
     },
     NamedEdit::Given::kTogether},
};

}  // namespace

std::string assumes_nothing(const std::string&) { return {}; }

std::span<const NamedEdit> named_edits() { return kEdits; }

}  // namespace rehearse::cli
