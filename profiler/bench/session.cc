#include "profiler/bench/session.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include <fmt/core.h>

#include "profiler/bench/library.h"
#include "profiler/bench/operation.h"

namespace rehearse::bench {
namespace {

/// Shapes that are measured in turn.
constexpr std::size_t kGroup = 4;

std::string one_line(const Error& error) {
  const Diagnostic& d = error.diagnostics.front();
  return d.expected.empty() ? d.problem : d.problem + "; " + d.expected;
}

/// Measures the shapes of one family on one GPU (collectives: on all).
class FamilyRun {
 public:
  FamilyRun(Runner& runner, const Gpu& gpu, const std::string& libraries, const Request& request,
            Outcome& outcome, const std::function<bool(double)>& advance)
      : runner_(runner),
        gpu_(gpu),
        libraries_(libraries),
        request_(request),
        outcome_(outcome),
        advance_(advance) {}

  void run(const std::vector<Shape>& shapes) {
    for (const Shape& shape : shapes) {
      if (outcome_.interrupted) return;
      if (group_.size() == kGroup) measure_group();
      add(shape);
    }
    measure_group();
  }

 private:
  struct Member {
    Shape shape;
    std::unique_ptr<Operation> operation;
    std::vector<std::unique_ptr<StreamSubject>> subjects;  // hot, then cold
  };

  /// Adds a shape with two sets of operands. If memory is short, it is measured without the rest of
  /// the group, then with one set.
  void add(const Shape& shape) {
    gpu_.make_current();
    Result<std::unique_ptr<Operation>> operation = runner_.prepare(shape, 2);
    if (!operation && lacks_memory(operation.error()) && !group_.empty()) {
      measure_group();
      if (outcome_.interrupted) return;
      operation = runner_.prepare(shape, 2);
    }
    std::string note;
    if (!operation && lacks_memory(operation.error())) {
      operation = runner_.prepare(shape, 1);
      note = "one set of operands: memory is short";
    }
    if (!operation) {
      outcome_.skipped.push_back({shape, one_line(operation.error())});
      step();
      return;
    }
    Member member{shape, std::move(*operation), {}};
    member.subjects.push_back(std::make_unique<StreamSubject>(*member.operation, false));
    if (has_cold(shape))
      member.subjects.push_back(std::make_unique<StreamSubject>(*member.operation, true));
    notes_.push_back(std::move(note));
    group_.push_back(std::move(member));
  }

  void measure_group() {
    std::vector<Subject*> subjects;
    for (const Member& member : group_)
      for (const auto& subject : member.subjects) subjects.push_back(subject.get());
    const std::function<bool()> stop = [this] {
      outcome_.interrupted = outcome_.interrupted || !advance_(0);
      return outcome_.interrupted;
    };
    std::vector<Measurement> found = bench::measure(subjects, request_.method, stop);
    std::size_t at = 0;
    for (std::size_t i = 0; i < group_.size(); ++i) {
      for (std::size_t state = 0; state < group_[i].subjects.size(); ++state, ++at)
        keep(group_[i], state == 1, notes_[i], found[at]);
      step();
    }
    group_.clear();
    notes_.clear();
  }

  void step() {
    if (!advance_(1)) outcome_.interrupted = true;
  }

  void keep(const Member& member, bool cold, const std::string& note, const Measurement& m) {
    const Shape& shape = member.shape;
    if (!m.status) {
      if (!outcome_.interrupted)
        outcome_.skipped.push_back(
            {shape, fmt::format("{}: {}", cold ? "cold" : "hot", one_line(m.status.error()))});
      return;
    }
    std::string all = note;
    const std::string own = member.operation->note();
    if (!own.empty()) all += (all.empty() ? "" : "; ") + own;
    outcome_.timings.push_back(
        {.op = shape.op,
         .shape = shape.text(),
         .dtype = shape.dtype,
         .layout = shape.layout,
         .epilogue = shape.epilogue,
         .cold = cold,
         .device = gpu_.info().name,
         .multiprocessors = gpu_.info().multiprocessors,
         .partition = gpu_.info().partition,
         .memory_clock_hz = gpu_.info().memory_clock_hz,
         .libraries = libraries_,
         .median = m.summary.median,
         .mean = m.summary.mean,
         .min = m.summary.min,
         .p10 = m.summary.p10,
         .p90 = m.summary.p90,
         .samples = m.summary.samples,
         .half_width = std::isfinite(m.summary.half_width) ? m.summary.half_width : 1,
         .dropped = m.dropped,
         .capped = m.capped,
         .sm_clock_hz = m.sm_clock_hz,
         .date = request_.date,
         .note = std::move(all)});
  }

  Runner& runner_;
  const Gpu& gpu_;
  const std::string& libraries_;
  const Request& request_;
  Outcome& outcome_;
  const std::function<bool(double)>& advance_;
  std::vector<Member> group_;
  std::vector<std::string> notes_;
};

bool same_kind(const GpuInfo& a, const GpuInfo& b) {
  return a.name == b.name && a.partition == b.partition && a.multiprocessors == b.multiprocessors;
}

/// Convolutions and attention share a library, and its runner.
Family runner_of(Family family) { return family == Family::kAttention ? Family::kConv : family; }

bool over_all(const Shape& shape) {
  return shape.rule().family == Family::kCollective || shape.layout == "peer";
}

}  // namespace

bool has_cold(const Shape& shape) {
  const Family family = shape.rule().family;
  if (family == Family::kCopy) return shape.layout == "d2d" || shape.op == "set";
  return family != Family::kCollective;
}

Seconds estimated_time(const std::vector<Shape>& shapes) {
  // Approximate total of warm-up (shared by a group of four), operands, and samples to one percent.
  constexpr Seconds kEach = Seconds::ms(250);
  double states = 0;
  for (const Shape& shape : shapes) states += has_cold(shape) ? 2 : 1;
  return kEach * states;
}

Session::Session(Session&&) noexcept = default;
Session::~Session() = default;

Result<Session> Session::open() {
  Cuda cuda = TRY(Cuda::open());
  Session session;
  session.cuda_ = std::make_unique<Cuda>(cuda);
  Result<Nvml> nvml = Nvml::open();
  if (nvml)
    session.nvml_ = std::make_unique<Nvml>(std::move(*nvml));
  else
    session.no_clocks_ = nvml.error().diagnostics.front().problem;
  for (int i = 0; i < session.cuda_->devices(); ++i)
    session.gpus_.push_back(TRY(Gpu::open(*session.cuda_, session.nvml_.get(), i)));
  return session;
}

Outcome Session::measure(const Request& request) {
  Outcome outcome;
  outcome.clocks = no_clocks_;
  std::vector<Gpu*> kinds;
  for (const auto& gpu : gpus_)
    if (std::ranges::none_of(
            kinds, [&](const Gpu* known) { return same_kind(known->info(), gpu->info()); }))
      kinds.push_back(gpu.get());
  for (const Gpu* gpu : kinds) outcome.gpus.push_back(gpu->info());

  std::array<std::vector<Shape>, kFamilies> by_family;
  double all = 0, done = 0;
  for (Shape shape : request.shapes) {
    if (shape.rule().family == Family::kCollective && shape["ranks"] == 0)
      shape.extents[1] = gpus_.size();
    all += over_all(shape) ? 1 : static_cast<double>(kinds.size());
    by_family[static_cast<std::size_t>(shape.rule().family)].push_back(std::move(shape));
  }
  const std::function<bool(double)> advance = [&](double shapes) {
    done += shapes;
    return !request.progress || request.progress(done / std::max(all, 1.0));
  };

  for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
    Gpu& gpu = *kinds[kind];
    std::map<Family, Result<std::unique_ptr<Runner>>> runners;
    for (std::size_t f = 0; f < kFamilies; ++f) {
      std::vector<Shape> shapes = by_family[f];
      if (kind > 0) std::erase_if(shapes, over_all);
      if (shapes.empty() || outcome.interrupted) continue;
      const auto family = static_cast<Family>(f);
      const Family owner = runner_of(family);
      auto found = runners.find(owner);
      if (found == runners.end()) {
        // Peer copies and collectives begin at the first GPU, which is of the first kind.
        const std::span<const std::unique_ptr<Gpu>> from_here =
            std::span(gpus_).subspan(static_cast<std::size_t>(gpu.ordinal()));
        found = runners
                    .emplace(owner, owner == Family::kGemm          ? open_gemm(gpu)
                                    : owner == Family::kConv        ? open_cudnn(gpu)
                                    : owner == Family::kElementwise ? open_kernels(gpu)
                                    : owner == Family::kCopy        ? open_copies(from_here)
                                                                    : open_collectives(gpus_))
                    .first;
      }
      if (!found->second) {
        if (kind == 0) outcome.left_out.push_back({family, shapes.size(), found->second.error()});
        advance(static_cast<double>(shapes.size()));
        continue;
      }
      Runner& runner = **found->second;
      std::string libraries = fmt::format("driver {}", cuda_version(cuda_->version()));
      if (!runner.library().empty()) libraries += ", " + runner.library();
      FamilyRun(runner, gpu, libraries, request, outcome, advance).run(shapes);
    }
  }
  return outcome;
}

}  // namespace rehearse::bench
