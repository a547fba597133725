#include "cli/check/step_picture.h"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "cli/output/event_writer.h"
#include "profiler/compare/effect.h"
#include "profiler/trace/collective_names.h"
#include "sim/base/file.h"

namespace rehearse::cli {
namespace {

using replay::Recording, trace::GpuKind;

graph::Category category_of(const Recording& r, const trace::GpuOp& op) {
  if (op.kind != GpuKind::kKernel) return graph::Category::kMemory;
  return op.collective || trace::is_communication_kernel(r.name(op))
             ? graph::Category::kCommunication
             : graph::Category::kCompute;
}

StepPicture::Rank rank_in(const Recording& r, std::size_t index, const replay::StepSpan& window,
                          Nanoseconds zero) {
  StepPicture::Rank rank{.number = r.rank().info.rank.value_or(static_cast<std::uint32_t>(index))};
  const auto inside = [&](Nanoseconds time) { return time >= window.start && time < window.end; };
  const auto add = [&](std::string_view name, graph::Category category, Nanoseconds start,
                       Nanoseconds end) {
    rank.spans.push_back({std::string(name), category, rank.lanes.size() - 1,
                          (start - zero).seconds(), (end - start).seconds()});
  };
  for (const replay::HostThread& thread : r.threads()) {
    rank.lanes.push_back(
        fmt::format("thread {}", r.name(r.rank().threads[thread.id.index()].thread)));
    for (const replay::HostIndex i : thread.ops) {
      const trace::HostOp& op = r.host(i);
      // A range that encloses many steps is drawn only within this one.
      const Nanoseconds start = std::max(op.start, window.start);
      const Nanoseconds end = std::min(op.start + op.duration, window.end);
      if (start < end) add(r.name(op), graph::Category::kHost, start, end);
    }
  }
  for (const replay::Stream& stream : r.streams()) {
    rank.lanes.push_back(fmt::format("gpu {} stream {}", stream.device, stream.number));
    for (const replay::GpuIndex i : stream.ops) {
      const trace::GpuOp& op = r.gpu(i);
      const auto call = r.launcher(i);
      if (inside(call ? r.host(*call).start : op.start))
        add(r.name(op), category_of(r, op), op.start, op.end());
    }
  }
  return rank;
}

}  // namespace

StepPicture typical_step(const std::vector<Recording>& recordings, const compare::Run& run) {
  const double level = compare::level_of(run.step_time);
  const auto off = [&](double time) { return std::abs(time - level); };
  const auto typical =
      std::ranges::min_element(run.step_time, [&](double a, double b) { return off(a) < off(b); });
  const auto step = static_cast<std::size_t>(typical - run.step_time.begin());
  StepPicture picture{.step = step + 1, .of = run.steps(), .length = Seconds::s(*typical)};
  Nanoseconds zero = run.windows.front()[step].start;
  for (const auto& windows : run.windows) zero = std::min(zero, windows[step].start);
  for (std::size_t r = 0; r < recordings.size(); ++r)
    picture.ranks.push_back(rank_in(recordings[r], r, run.windows[r][step], zero));
  return picture;
}

Status write_steps(const std::filesystem::path& path, const StepPicture& baseline,
                   const StepPicture& candidate) {
  PendingFile file = TRY(PendingFile::create(path));
  EventWriter events(file);
  std::size_t process = 0;
  const auto draw = [&](const char* run, const StepPicture& picture) {
    for (const StepPicture::Rank& rank : picture.ranks) {
      ++process;
      events.process(process, fmt::format("{}: rank {}, step {} of {} ({})", run, rank.number,
                                          picture.step, picture.of, to_string(picture.length, 4)));
      for (std::size_t lane = 0; lane < rank.lanes.size(); ++lane)
        events.thread(process, lane + 1, rank.lanes[lane]);
      for (const StepPicture::Span& span : rank.spans)
        events.span({span.name, span.category, process, span.lane + 1, span.start, span.duration});
    }
  };
  draw("baseline", baseline);
  draw("candidate", candidate);
  return events.finish();
}

}  // namespace rehearse::cli
