// rehearse live: a page on this machine whose settings change a prediction at once.
#include <memory>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "cli/commands/commands.h"
#include "cli/commands/describe_job.h"
#include "cli/commands/options.h"
#include "cli/config/job_file.h"
#include "cli/live/live_job.h"
#include "cli/live/live_recording.h"
#include "cli/live/server.h"
#include "cli/output/document.h"
#include "cli/output/json.h"
#include "cli/report/report.h"
#include "profiler/ingest/detect.h"
#include "sim/base/file.h"

namespace rehearse::cli {
namespace {

struct LiveOptions {
  std::filesystem::path file;
  DescribedJob described;
};

/// What a page asks: {"fidelity": "closed", "settings": {"plan.tensor": "8"}}.
struct Question {
  std::string fidelity;
  Settings settings;
};

Result<Question> read_question(const std::string& body) {
  const nlohmann::json json = nlohmann::json::parse(body, nullptr, false);
  const auto wrong = [] {
    return fail("the request is not of this page",
                R"({"fidelity": NAME, "settings": {KEY: TEXT}})");
  };
  if (!json.is_object() || !json.contains("fidelity") || !json.contains("settings") ||
      !json["fidelity"].is_string() || !json["settings"].is_object())
    return wrong();
  Question question{.fidelity = json["fidelity"], .settings = {}};
  for (const auto& [key, value] : json["settings"].items()) {
    if (!value.is_string()) return wrong();
    question.settings.emplace_back(key, value);
  }
  return question;
}

Result<Reply> answered(const LiveSubject& subject, std::string_view path, const Question& asked) {
  if (path == "job") {
    if (!subject.save) return fail("a recording is not a job");
    std::string job = TRY(subject.save(asked.settings));
    return Reply{.type = "application/yaml", .body = std::move(job), .file = subject.saved_as};
  }
  LiveSubject::Answer answer = TRY(subject.answer(asked.settings, asked.fidelity));
  if (path == "report")
    return Reply{.type = "text/html; charset=utf-8",
                 .body = page_text(answer.data),
                 .file = std::filesystem::path(subject.name).stem().string() + ".html"};
  answer.data["fidelity"] = asked.fidelity;
  answer.data["controls"] = json_of(answer.controls);
  return Reply{.body = json_text(answer.data)};
}

Result<LiveSubject> subject_of(const std::filesystem::path& file, const Globals& globals) {
  if (!held_file(file) && ingest::detect_input(file)) return live_recording(file, globals);
  return live_job(file, globals);
}

Result<Exit> run(const LiveOptions& options, const Globals& globals) {
  const LiveSubject subject = TRY(subject_of(options.file, globals));
  Json fidelities = Json::array();
  for (const auto& [name, words] : subject.fidelities)
    fidelities.push_back({{"name", name}, {"words", words}});
  Site site;
  site.page = page_text({{"live",
                          {{"name", subject.name},
                           {"fidelities", std::move(fidelities)},
                           {"saves", !subject.saved_as.empty()},
                           {"controls", json_of(subject.controls)}}}},
                        "'self'");
  site.paths = {"answer", "report", "job"};
  site.answer = [&](std::string_view path, const std::string& body) {
    const Result<Reply> reply = read_question(body).and_then(
        [&](const Question& asked) { return answered(subject, path, asked); });
    return reply ? *reply : Reply{.status = 422, .body = json_text(json_of(reply.error()))};
  };
  TRY(serve(site, [&](const std::string& address) {
    return write_text(globals,
                      fmt::format("{} is live at {} until Ctrl-C\n", subject.name, address));
  }));
  return Exit::kSuccess;
}

}  // namespace

void add_live(CLI::App& app, Action& action) {
  auto options = std::make_shared<LiveOptions>();
  CLI::App* command = app.add_subcommand(
      "live", "Serve a page on this machine with controls that change a job or a recording");
  add_value(*command, "FILE", "FILE", options->file, "job file, or a recording");
  add_described_job(*command, options->described, JobUse::kOnePlan);
  command->footer(
      "Examples:\n"
      "  rehearse live job.yaml\n"
      "  rehearse live trace.json.gz\n"
      "  rehearse live --model llama3_70b --gpus 64 --device h100_sxm5_80 --plan tp8,pp4 --batch "
      "512");
  command->callback([options, &action] {
    check_described_job(options->file, options->described, JobUse::kOnePlan);
    if (options->file.empty() && options->described.model.empty())
      wrong_usage("FILE is missing: a job file, a recording, or --model NAME");
    action = [options](const Globals& globals) {
      return on_described_job(options->described, JobUse::kOnePlan, options->file,
                              [&] { return run(*options, globals); });
    };
  });
}

}  // namespace rehearse::cli
