#include "cli/proving/proof.h"

#include <algorithm>
#include <cstdlib>

#include <fcntl.h>
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/globals.h"
#include "cli/proving/shell.h"
#include "sim/base/file.h"
#include "sim/base/installed.h"
#include "sim/base/statistics.h"
#include "sim/base/text.h"

namespace rehearse::cli {
namespace {

namespace fs = std::filesystem;

/// A folder in the system's folder for temporary files, which ends with this object, or with the
/// next one if this run is killed: it is locked while it is in use.
class WorkFolder {
 public:
  static Result<WorkFolder> create() {
    const fs::path parent = fs::temp_directory_path();
    remove_unused(parent);
    std::string path = parent / kName;
    path += "XXXXXX";
    if (!::mkdtemp(path.data())) return fail_in(path, "cannot be created");
    return WorkFolder(path, locked(path));
  }
  WorkFolder(WorkFolder&& other) noexcept
      : path_(std::exchange(other.path_, {})), lock_(std::exchange(other.lock_, -1)) {}
  WorkFolder& operator=(WorkFolder&&) = delete;
  ~WorkFolder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
    ::close(lock_);
  }
  const fs::path& path() const { return path_; }

 private:
  static constexpr const char* kName = "rehearse-prove-";

  WorkFolder(fs::path path, int lock) : path_(std::move(path)), lock_(lock) {}

  /// A descriptor that locks a folder of this user; -1 if it is none or another process has it.
  static int locked(const fs::path& path) {
    const int folder = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat about = {};
    if (::fstat(folder, &about) == 0 && about.st_uid == ::geteuid() &&
        ::flock(folder, LOCK_EX | LOCK_NB) == 0)
      return folder;
    ::close(folder);
    return -1;
  }

  static void remove_unused(const fs::path& parent) {
    std::error_code failed, ignored;
    for (fs::directory_iterator at(parent, failed), end; !failed && at != end;
         at.increment(failed)) {
      if (!at->path().filename().string().starts_with(kName)) continue;
      const int lock = locked(at->path());
      if (lock >= 0) fs::remove_all(at->path(), ignored);
      ::close(lock);
    }
  }

  fs::path path_;
  int lock_;
};

class Commands {
 public:
  Commands(const Pair& pair, const fs::path& folder) : pair_(pair), folder_(folder) {
    std::error_code error;
    const fs::path program = fs::read_symlink("/proc/self/exe", error).parent_path();
    const char* path = std::getenv("PATH");
    const Result<fs::path> examples = installed_library("examples");
    variables_ = {
        fmt::format("PATH={}:{}{}", program.string(), examples ? examples->string() + ":" : "",
                    path ? path : "/usr/bin:/bin"),
        "PAIR=" + pair.file.parent_path().string(), "BASELINE=" + pair.baseline};
  }

  /// `key` names the command in errors.
  Result<std::string> run(const std::string& key, const std::string& text) const {
    return named(
        key, run_shell(
                 {.text = text, .folder = folder_, .variables = variables_, .limit = pair_.limit}));
  }

  Result<Round> round(bool candidate_first) const {
    std::error_code ignored;
    fs::remove_all(folder_ / "recording", ignored);
    const std::string recorded = TRY(run("record", pair_.record));
    Result<Seconds> baseline =
        candidate_first ? Seconds::s(0) : measure("baseline", pair_.baseline);
    if (!baseline) return forward(baseline);
    const Seconds candidate = TRY(measure("candidate", pair_.candidate));
    if (candidate_first) baseline = measure("baseline", pair_.baseline);
    if (!baseline) return forward(baseline);
    std::optional<Seconds> step;
    if (const Result<Seconds> stated = stated_step(pair_, recorded)) step = *stated;
    const Estimate<Seconds> predicted = TRY(predict(step ? *baseline / *step : 1));
    return Round{
        .recorded = step, .predicted = predicted, .baseline = *baseline, .candidate = candidate};
  }

 private:
  template <class T>
  Result<T> named(const std::string& key, Result<T> result) const {
    if (result) return result;
    Diagnostic why = std::move(result.error().diagnostics.front());
    why.file = pair_.file.string();
    why.key = key;
    return fail(std::move(why));
  }

  Result<Seconds> measure(const std::string& key, const std::string& text) const {
    const std::string output = TRY(run(key, text));
    return named(key, stated_step(pair_, output));
  }

  Result<Estimate<Seconds>> predict(double unrecorded) const {
    const fs::path file = folder_ / "prediction.json";
    TRY(run("predict", fmt::format("UNRECORDED={:.6f}; rehearse {} --quiet --format json -o '{}'",
                                   unrecorded, pair_.predict, file.string())));
    const std::string text = TRY(read_file(file));
    const auto json = nlohmann::json::parse(text, nullptr, false);
    try {
      const auto& step = json.at("step_time");
      const auto in_seconds = [&](const char* key) { return Seconds::s(step.at(key)); };
      const auto* const named =
          std::ranges::find(kProvenanceNames, step.at("provenance").get<std::string>());
      if (named != std::end(kProvenanceNames))
        return Estimate<Seconds>{in_seconds("value"), in_seconds("low"), in_seconds("high"),
                                 static_cast<Provenance>(named - std::begin(kProvenanceNames))};
    } catch (const nlohmann::json::exception&) {
    }
    return fail(Diagnostic{.file = pair_.file.string(),
                           .key = "predict",
                           .problem = "gave no step time with an interval",
                           .expected = "arguments of whatif or simulate"});
  }

  const Pair& pair_;
  const fs::path& folder_;
  std::vector<std::string> variables_;
};

template <class Value>
std::vector<Seconds> each(const std::vector<Round>& rounds, const Value& value) {
  std::vector<Seconds> all;
  for (const Round& round : rounds) all.push_back(value(round));
  return all;
}

MedianStep median_step(std::vector<Seconds> values) {
  std::ranges::sort(values);
  MedianStep step{.value = median(values), .interval = {}};
  if (const auto ends = median_interval(values.size()))
    step.interval = std::pair(values[ends->first], values[ends->second]);
  return step;
}

}  // namespace

std::optional<double> MedianStep::precision() const {
  if (!interval) return std::nullopt;
  return (interval->second - interval->first) / value / 2;
}

std::optional<bool> Proof::right_direction() const {
  if (!baseline.interval || !candidate.interval) return std::nullopt;
  const bool apart = baseline.interval->second < candidate.interval->first ||
                     candidate.interval->second < baseline.interval->first;
  if (!apart) return std::nullopt;
  return predicted_change() * measured_change() > 0;
}

Proof proof_of(const std::vector<Round>& rounds) {
  const auto of_prediction = [&](Seconds Estimate<Seconds>::*part) {
    return median_step(each(rounds, [part](const Round& r) { return r.predicted.*part; }));
  };
  const MedianStep predicted = of_prediction(&Estimate<Seconds>::value);
  Proof proof{.rounds = rounds.size(),
              .baseline = median_step(each(rounds, [](const Round& r) { return r.baseline; })),
              .candidate = median_step(each(rounds, [](const Round& r) { return r.candidate; })),
              .predicted = {predicted.value, of_prediction(&Estimate<Seconds>::low).value,
                            of_prediction(&Estimate<Seconds>::high).value,
                            rounds.front().predicted.provenance},
              .recording_cost = {},
              .precision = {}};
  if (std::ranges::all_of(rounds, [](const Round& r) { return r.recorded.has_value(); }))
    proof.recording_cost =
        median(each(rounds, [](const Round& r) { return *r.recorded; })) / proof.baseline.value - 1;
  for (const MedianStep& step : {predicted, proof.baseline, proof.candidate})
    if (const auto precision = step.precision())
      proof.precision = std::max(proof.precision.value_or(0), *precision);
  return proof;
}

Proven prove(const Pair& pair, std::size_t most, const std::function<void(std::size_t)>& progress) {
  Proven proven;
  const Result<WorkFolder> folder = WorkFolder::create();
  if (!folder) {
    proven.error = folder.error();
    return proven;
  }
  const Commands commands(pair, folder->path());
  if (!pair.needs.empty())
    if (const auto there = commands.run("needs", pair.needs); !there) {
      proven.skipped =
          fmt::format("`{}` {}", pair.needs, there.error().diagnostics.front().problem);
      return proven;
    }
  const Result<std::string> prepared =
      pair.prepare.empty() ? "" : commands.run("prepare", pair.prepare);
  if (!prepared) proven.error = prepared.error();
  std::vector<Round> rounds;
  while (!proven.error && rounds.size() < most) {
    progress(rounds.size());
    const Result<Round> round = commands.round(rounds.size() % 2 == 1);
    if (!round && interrupted && proven.proof) break;
    if (!round) {
      proven.error = round.error();
      break;
    }
    rounds.push_back(*round);
    proven.proof = proof_of(rounds);
    if (proven.proof->precision.value_or(1) <= kKnown) break;
  }
  return proven;
}

}  // namespace rehearse::cli
