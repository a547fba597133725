#include "cli/live/live_recording.h"

#include <array>

#include <fmt/core.h>

#include "cli/commands/edits.h"
#include "cli/commands/networking.h"
#include "cli/commands/whatif.h"
#include "profiler/replay/edit.h"
#include "sim/base/text.h"

namespace rehearse::cli {
namespace {

/// The targets of --scale that have a slider.
constexpr std::pair<std::string_view, const char*> kScaled[] = {
    {"gpu", "times of all kernels, copies and collectives, multiplied"},
    {"kernel", "times of kernels, multiplied"},
    {"copy", "times of copies, multiplied"},
    {"collective", "times of collectives, multiplied"},
    {"host", "times of the host's work, multiplied"},
    {"launch", "times of launches, multiplied"}};
constexpr strategies::ValueRange kFactor = {0.01, 100};
constexpr std::array<std::string_view, 15> kFactors = {"0.1", "0.2", "0.3", "0.4", "0.5",
                                                       "0.6", "0.7", "0.8", "0.9", "1",
                                                       "1.2", "1.5", "2",   "3",   "4"};
constexpr std::string_view kScale = "--scale";
/// The timeline has most of the bytes of an answer, and takes half of its time.
constexpr const char* kWithTimeline = "timeline";

std::vector<Control> controls_of_edits() {
  std::vector<Control> controls;
  for (const auto& [target, meaning] : kScaled)
    controls.push_back({.key = fmt::format("{} {}", kScale, target),
                        .label = fmt::format("{} ×", target),
                        .group = "times",
                        .meaning = meaning,
                        .kind = "number",
                        .names = {kFactors.begin(), kFactors.end()},
                        .range = kFactor,
                        .value = "1"});
  const auto add = [&](const std::string& key, std::string meaning, std::string_view kind) {
    controls.push_back({.key = key,
                        .label = key.substr(2),
                        .group = "edits",
                        .meaning = std::move(meaning),
                        .kind = kind});
  };
  for (const NamedEdit& edit : named_edits()) add(edit.option, edit.help, "lines");
  add("--input-pipeline",
      "workers=N[,prefetch=2][,load=PATTERN][,cpus=N][,receive=TIME], load batches in worker "
      "processes",
      "text");
  add("--network", "latency=5us,rate=100GB/s, network between ranks for the recorded collectives",
      "text");
  add("--slice", "run each recorded rank on an instance of this MIG profile, such as 2g.20gb",
      "text");
  return controls;
}

/// The edits, and the words of the command line that applies them.
struct Edits {
  WhatifOptions options;
  std::vector<std::string> words;
};

Status add_edit(Edits& edits, std::string_view option, const std::string& text) {
  for (std::size_t i = 0; i < named_edits().size(); ++i) {
    if (named_edits()[i].option != option) continue;
    if (const Status valid = named_edits()[i].check(text); !valid)
      return fail(fmt::format("{}: {}", option, to_string(valid.error())));
    edits.options.named[i].push_back(text);
    edits.words.insert(edits.words.end(), {std::string(option), text});
    return {};
  }
  // Names of files would let the page read them.
  if (option == "--input-pipeline") {
    TRY(replay::parse_input_pipeline(text));
    edits.options.input_pipeline = text;
  } else if (option == "--network") {
    if (!is_inline_link(text))
      return fail(fmt::format("--network: '{}' is not a link", text), "latency=5us,rate=100GB/s");
    edits.options.network = text;
  } else if (option == "--slice") {
    edits.options.request.sharing.slice = text;
  } else {
    return fail(fmt::format("this page has no setting '{}'", option));
  }
  edits.words.insert(edits.words.end(), {std::string(option), text});
  return {};
}

Result<Edits> edits_of(const Settings& settings) {
  Edits edits;
  edits.options.named.resize(named_edits().size());
  for (const auto& [key, value] : settings) {
    if (key.starts_with(fmt::format("{} ", kScale))) {
      TRY(add_edit(edits, kScale, fmt::format("{}:{}", key.substr(kScale.size() + 1), value)));
      continue;
    }
    for (const std::string_view line : split(value, '\n'))
      if (const std::string_view text = trim(line); !text.empty())
        TRY(add_edit(edits, key, std::string(text)));
  }
  return edits;
}

}  // namespace

Result<LiveSubject> live_recording(const std::filesystem::path& path, const Globals& globals) {
  ReplayRequest request;
  request.inputs = {path};
  Globals quiet = globals;  // the page has the warnings
  quiet.quiet = true;
  const auto job = std::make_shared<ReplayJob>(TRY(load_job(request, globals)));
  LiveSubject subject{.name = path.filename().string(),
                      .fidelities = {{"replay", "by replaying the recording"},
                                     {kWithTimeline, "with the timeline"}},
                      .controls = controls_of_edits()};
  subject.answer = [path, job, quiet](const Settings& settings,
                                      std::string_view fidelity) -> Result<LiveSubject::Answer> {
    const Edits edits = TRY(edits_of(settings));
    const EditedJob run = TRY(run_edits(edits.options, quiet, std::move(*job)));
    ReportDetails details{.inputs = {path}, .suites = {"replay"}};
    const char* command = edits.words.empty() ? "replay" : "whatif";
    details.command = {"rehearse", command, path.string()};
    details.command.insert(details.command.end(), edits.words.begin(), edits.words.end());
    if (fidelity == kWithTimeline)
      details = with_timeline(std::move(details), view_of(run.job, run.edited.run));
    return LiveSubject::Answer{page_data(whatif_document(run), details), controls_of_edits()};
  };
  return subject;
}

}  // namespace rehearse::cli
